// SPDX-License-Identifier: MIT
#include <set>
#include <thread>

#include "base/error.hpp"
#include "comma_locale.hpp"
#include "support.hpp"

namespace fpt {
namespace {

std::vector<std::string>& received() {
  static std::vector<std::string> texts;
  return texts;
}

void receive(const char* text, int64_t length) { received().emplace_back(text, static_cast<std::size_t>(length)); }

struct Warnings : testing::Test {
  void SetUp() override {
    set_warning_handler(receive);  // whatever was kept before
    received().clear();
  }
  void TearDown() override { set_warning_handler(nullptr); }
};

TEST(ErrorText, HasNoListOfBackends) {
  const std::string wrong = "Could not run 'aten::empty' with arguments from the 'XPU' backend.";
  const std::string list =
      " This could be because the operator doesn't exist for this backend, or was omitted. 'aten::empty' is only "
      "available for these backends: [CPU, Meta].\n\nCPU: registered at /a/b.cpp:1 [kernel]\n"
      "Meta: fallthrough registered at /a/c.cpp:2 [backend fallback]";
  const auto remembered = [](const std::string& text) {
    remember_error(FPT_ERR_PYTHON, text);
    return last_error();
  };
  EXPECT_EQ(remembered(wrong), wrong);
  EXPECT_EQ(remembered(wrong + list), wrong);
  EXPECT_EQ(remembered(wrong + list + "\n"), wrong + "\n");
  EXPECT_EQ(remembered("f: " + wrong + list + "\nIt was called with 1."), "f: " + wrong + "\nIt was called with 1.");
  EXPECT_EQ(remembered(wrong + list.substr(0, list.find('\n')) + "\nTraceback\n" + wrong + list),
            wrong + "\nTraceback\n" + wrong);
}

TEST(StatusName, IsWhatFortranProgramsWrite) {
  EXPECT_STREQ(status_name(FPT_OK), "FTN_PYTORCH_OK");
  EXPECT_STREQ(status_name(FPT_ERR_SHAPE), "FTN_PYTORCH_ERR_SHAPE");
  EXPECT_STREQ(status_name(FPT_ERR_INTERNAL), "FTN_PYTORCH_ERR_INTERNAL");
}

TEST(StatusName, OfAValueThatIsNoneSaysSo) {
  EXPECT_STREQ(status_name(-1), "unknown status");
  EXPECT_STREQ(status_name(FPT_ERR_LIBRARY + 1), "unknown status");
}

TEST(StatusName, AllStatusesHaveDifferentNamesThatLeadBackToThem) {
  std::set<std::string> names;
  for (fpt_status status = FPT_OK; status <= FPT_ERR_LIBRARY; ++status) {
    const std::string name = status_name(status);
    EXPECT_TRUE(names.insert(name).second) << name;
    const std::string prefix = "FTN_PYTORCH_ERR_";
    if (status != FPT_OK) {
      ASSERT_EQ(name.rfind(prefix, 0), 0u) << name;
      EXPECT_EQ(status_of_name(name.substr(prefix.size())), status);
    }
  }
}

TEST(StatusName, ANameThatIsNoneIsADefectOfTheLibrary) {
  EXPECT_EQ(status_of_name("NONSENSE"), FPT_ERR_INTERNAL);
  EXPECT_EQ(status_of_name(""), FPT_ERR_INTERNAL);
  EXPECT_EQ(status_of_name("OK"), FPT_ERR_INTERNAL);
}

TEST(ErrorText, IsMadeOfAllPartsInOrder) {
  const auto outcome = test::outcome_of([] { fail(FPT_ERR_SHAPE, "got ", 3, " of ", 4.5, '!'); });
  EXPECT_EQ(outcome.status, FPT_ERR_SHAPE);
  EXPECT_EQ(outcome.text, "got 3 of 4.5!");
}

TEST(LastError, IsKeptUntilTheNextFailure) {
  EXPECT_EQ(remember_error(FPT_ERR_FILE, "first"), FPT_ERR_FILE);
  EXPECT_EQ(last_error(), "first");
  remember_error(FPT_ERR_SHAPE, "second");
  EXPECT_EQ(last_error(), "second");
}

TEST(LastError, BelongsToTheThread) {
  remember_error(FPT_ERR_FILE, "of the first thread");
  std::string before, after;
  std::thread([&] {
    before = last_error();
    remember_error(FPT_ERR_FILE, "of the second thread");
    after = last_error();
  }).join();
  EXPECT_EQ(before, "");
  EXPECT_EQ(after, "of the second thread");
  EXPECT_EQ(last_error(), "of the first thread");
}

TEST(LastError, KeepsNulBytesAndLongTexts) {
  const std::string text = std::string(200000, 'x') + std::string("\0end", 4);
  remember_error(FPT_ERR_PYTHON, text);
  EXPECT_EQ(last_error(), text);
}

TEST(LastError, IsUtf8WhateverItWasMadeOf) {
  const auto kept = [](const std::string& text) {
    remember_error(FPT_ERR_FILE, text);
    return last_error();
  };
  EXPECT_EQ(kept("caf\xe9 \xc3\xa9"), "caf\\xe9 \xc3\xa9");
  EXPECT_EQ(kept("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(kept("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half a surrogate pair";
  EXPECT_EQ(kept("\xc0\x80\xff"), "\\xc0\\x80\\xff");
  EXPECT_EQ(kept("\xe2\x82\xac\xf0\x9f\x98\x80"), "\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Concat, WritesNumbersAsInC) {
  const test::CommaLocale comma;
  EXPECT_EQ(concat(1234.5, ' ', 0.25f, ' ', int64_t{1234567}, ' ', uint8_t{'a'}), "1234.5 0.25 1234567 a");
  EXPECT_EQ(fixed(1234.565, 2) + fixed(-1e20, 0), "1234.57-100000000000000000000");
}

TEST_F(Warnings, GoToTheHandlerAtOnce) {
  warn("one");
  EXPECT_EQ(received(), std::vector<std::string>{"one"});
}

TEST_F(Warnings, AreUtf8) {
  warn("caf\xe9");
  EXPECT_EQ(received(), std::vector<std::string>{"caf\\xe9"});
}

TEST_F(Warnings, AreKeptInOrderUntilThereIsAHandler) {
  set_warning_handler(nullptr);
  warn("one");
  warn("two");
  EXPECT_TRUE(received().empty());
  set_warning_handler(receive);
  EXPECT_EQ(received(), (std::vector<std::string>{"one", "two"}));
}

TEST_F(Warnings, AreHandedOverOnce) {
  set_warning_handler(nullptr);
  warn("one");
  set_warning_handler(receive);
  set_warning_handler(receive);
  EXPECT_EQ(received().size(), 1u);
}

TEST_F(Warnings, AreHeldBackUntilTheEndOfWhatOthersWaitFor) {
  {
    const WarningsLater later;
    warn("one");
    {
      const WarningsLater inner;
      warn("two");
    }
    std::thread([] { warn("of another thread"); }).join();
    EXPECT_EQ(received(), std::vector<std::string>({"of another thread"}));
  }
  EXPECT_EQ(received(), std::vector<std::string>({"of another thread", "one", "two"}));
  warn("three");
  EXPECT_EQ(received().back(), "three");
}

TEST_F(Warnings, WithoutAHandlerTheFirst64AreKept) {
  set_warning_handler(nullptr);
  for (int i = 1; i <= 100; ++i) warn(std::to_string(i));
  set_warning_handler(receive);
  ASSERT_EQ(received().size(), 64u);
  EXPECT_EQ(received().front(), "1");
  EXPECT_EQ(received().back(), "64");
}

TEST_F(Warnings, AHandlerMayReplaceItself) {
  set_warning_handler([](const char*, int64_t) { set_warning_handler(receive); });
  warn("lost");
  warn("received");
  EXPECT_EQ(received(), std::vector<std::string>{"received"});
}

std::atomic<int> count{0};

TEST_F(Warnings, MayComeFromManyThreads) {
  count = 0;
  set_warning_handler([](const char*, int64_t) { ++count; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([] {
      for (int k = 0; k < 100; ++k) warn("text");
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 800);
}

}  // namespace
}  // namespace fpt
