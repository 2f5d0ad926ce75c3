// SPDX-License-Identifier: MIT
/// The environment of a process that works for a rank, after it has loaded for several.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "node/rank_place.hpp"

namespace fpt {
namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "(none)";
}

/// What a load has set, in a worker whose rank has its own value; null for none.
std::string value_for_rank(const char* own, const char* before_load) {
  RankPlace place = RankPlace::here(1, 2);
  const auto with = [&place](const char* value) {
    std::vector<std::string> found = place.variables;
    if (value) found.push_back(std::string("FPT_TEST_SET=") + value);
    return found;
  };
  const std::vector<std::string> before = with(before_load);
  place.variables = with(own);
  setenv("FPT_TEST_SET", "loaded", 1);
  place.enter(before);
  const std::string found = value_of("FPT_TEST_SET");
  unsetenv("FPT_TEST_SET");
  return found;
}

TEST(RankPlace, WhatTheLoadSetsReachesAllRanks) {
  EXPECT_EQ(value_for_rank(nullptr, nullptr), "loaded");
  EXPECT_EQ(value_for_rank("same", "same"), "loaded");
}

TEST(RankPlace, ARankKeepsAValueOfItsOwn) {
  EXPECT_EQ(value_for_rank("1", "0"), "1");
  EXPECT_EQ(value_for_rank("1", nullptr), "1");
  EXPECT_EQ(value_for_rank(nullptr, "0"), "(none)");
}

TEST(RankPlace, WhatNobodySetsStays) {
  const std::string path = value_of("PATH");
  static_cast<void>(value_for_rank(nullptr, nullptr));
  EXPECT_EQ(value_of("PATH"), path);
}

}  // namespace
}  // namespace fpt
