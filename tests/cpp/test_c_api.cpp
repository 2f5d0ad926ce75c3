// SPDX-License-Identifier: MIT
/// Bodies of the C interface: nothing gets past them, and a failure that cannot be reported is none.
#include <thread>

#include "arrays/arg.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::outcome;

TEST(CApi, AFullTableOfCopiesIsAStatus) {
  double values[] = {1, 2};
  const int64_t extents[] = {2};
  const uint32_t usual = copies().limit_to(1);
  std::vector<fpt_arg> unused(CopyTable::chunk_size + 1);
  fpt_status status = FPT_OK;
  for (fpt_arg& arg : unused)
    if (status == FPT_OK) status = fpt_arg_array(&arg, values, FPT_FLOAT64, 1, extents, nullptr, FPT_COPY);
  copies().limit_to(usual);
  EXPECT_FAILS(outcome(status), FPT_ERR_MEMORY, "the array cannot be copied: millions of copies wait");
  discard_copies({unused.data(), static_cast<int32_t>(unused.size())});
}

TEST(CApi, TheTextOfAThreadWithoutFailuresIsEmpty) {
  std::thread([] {
    const char* text = nullptr;
    int64_t length = -1;
    fpt_error_text(&text, &length);
    EXPECT_NE(text, nullptr);
    EXPECT_EQ(length, 0);
  }).join();
}

}  // namespace
}  // namespace fpt
