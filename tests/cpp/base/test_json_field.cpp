// SPDX-License-Identifier: MIT
/// Values out of the short JSON texts of files and locks, as Python's json.dumps writes them.
#include <gtest/gtest.h>

#include "base/json_field.hpp"

namespace fpt {
namespace {

TEST(JsonField, GivesWhatStandsBehindAKey) {
  constexpr std::string_view text = R"({"step": 12, "host": "a\"b, \"job\": 3}", "job": null, "rank_of_job": -1})";
  EXPECT_EQ(json_field(text, "step"), "12");
  EXPECT_EQ(json_field(text, "host"), R"(a\"b, \"job\": 3})") << "escapes stay, and no key is looked for in a text";
  EXPECT_EQ(json_field(text, "job"), "null");
  EXPECT_EQ(json_field(text, "rank_of_job"), "-1");
  EXPECT_EQ(json_field(text, "rank"), "");
}

TEST(JsonField, OfATextThatWasCutOffThereIsNone) {
  for (const char* text : {"", "{\"job\": ", "{\"job\": \"a", "{\"job\": \"a\\\"", "{\"job\": 1"})
    EXPECT_EQ(json_field(text, "job"), "") << text;
}

}  // namespace
}  // namespace fpt
