// SPDX-License-Identifier: MIT
/// Long texts of descriptions: which of them stay.
#include <thread>

#include "arrays/texts.hpp"
#include "support.hpp"

namespace fpt {
namespace {

fpt_arg whole_text(const std::string& text) { return test::in(text.c_str()); }

/// A text of its own for each number.
std::string text_of_number(std::size_t number, std::size_t length = 200) {
  std::string text = std::to_string(number);
  return text.append(length - text.size(), 'x');
}

test::Outcome use(const fpt_arg& arg) {
  return test::outcome_of([&] { text_owner(arg, "input 1"); });
}

constexpr std::size_t large = kept_text_bytes / 16;

TEST(Texts, ThoseThatWereUsedLastStayAndTheOthersGiveTheirMemoryBack) {
  const fpt_arg first = whole_text(text_of_number(1, large)), used = whole_text(text_of_number(2, large));
  const std::weak_ptr<const std::string> memory = text_owner(first, "");
  for (std::size_t i = 10; i < 10 + 2 * kept_texts; ++i) {
    whole_text(text_of_number(i, large));
    ASSERT_OK(use(used)) << "after " << i;
  }
  EXPECT_EQ(*text_owner(used, ""), text_of_number(2, large));
  EXPECT_FAILS(use(first), FPT_ERR_FREED, "input 1 is a string of 1048576 bytes that was described long ago");
  EXPECT_TRUE(memory.expired());
  EXPECT_OK(use(whole_text(text_of_number(1, large)))) << "described again";
}

TEST(Texts, ManyShortOnesStay) {
  std::vector<fpt_arg> args;
  for (std::size_t i = 0; i < 20000; ++i) args.push_back(whole_text(text_of_number(i)));
  for (std::size_t i = 0; i < args.size(); ++i) ASSERT_EQ(text_of(args[i]), *text_owner(args[i], "")) << i;
}

TEST(Texts, HundredsOfThousandsDoNotGrowMemory) {
  const auto resident = [] {
    std::ifstream sizes("/proc/self/statm");
    long all = 0, pages = 0;
    sizes >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE) >> 20;
  };
  for (std::size_t i = 0; i < 100000; ++i) whole_text(text_of_number(i));
  const long before = resident();
  for (std::size_t i = 0; i < 300000; ++i) whole_text(text_of_number(i + 1000000));
  EXPECT_LT(resident() - before, 16) << "MiB";
}

TEST(Texts, AreThereAsLongAsSomebodyReadsThem) {
  const fpt_arg arg = whole_text(text_of_number(7));
  const auto owner = text_owner(arg, "");
  std::thread([] {
    for (std::size_t i = 0; i < 2 * kept_texts; ++i) whole_text(text_of_number(i + 5000000, large));
  }).join();
  EXPECT_EQ(use(arg).status, FPT_ERR_FREED);
  EXPECT_EQ(text_of(arg), text_of_number(7));
}

TEST(Texts, ShortOnesAndOutputsNeedNoOwner) {
  std::string variable(300, ' ');
  EXPECT_EQ(text_owner(whole_text("short"), ""), nullptr);
  EXPECT_EQ(text_owner(test::out(variable), ""), nullptr);
}

}  // namespace
}  // namespace fpt
