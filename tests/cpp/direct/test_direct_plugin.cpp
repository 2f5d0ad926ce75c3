// SPDX-License-Identifier: MIT
/// Opening the plug-in that lies beside this program. What speaks against it is in tests/direct/test_choice.py.
#include <thread>

#include "direct/direct_plugin.hpp"
#include "support.hpp"

namespace fpt {
namespace {

TEST(DirectPlugin, NothingSpeaksAgainstTheOneOfThisBuild) {
  EXPECT_FALSE(direct_torch().folder.empty());
  EXPECT_EQ(direct_obstacle(), "");
}

TEST(DirectPlugin, IsOpenedOnceForAllThreads) {
  std::vector<const fpt_direct_table*> seen(8);
  std::vector<std::thread> threads;
  for (const fpt_direct_table*& one : seen) threads.emplace_back([&one] { one = &direct_plugin(); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_NE(opened_direct_plugin(), nullptr);
  EXPECT_EQ(seen, std::vector<const fpt_direct_table*>(8, opened_direct_plugin()));
}

TEST(DirectPlugin, IsThatOfTheTorchItWasBuiltWith) {
  const fpt_direct_table& table = direct_plugin();
  EXPECT_EQ(table.version, FPT_DIRECT_VERSION);
  EXPECT_EQ(std::string(table.torch_library()).rfind(direct_torch().folder, 0), 0u) << table.torch_library();
  EXPECT_TRUE(same_torch(loaded_torch(), direct_torch()));
}

TEST(DirectPlugin, ItsFailuresAreThrownWithItsText) {
  EXPECT_OK(test::outcome_of([] { require_direct(FPT_OK); }));
  fpt_direct_options options{};
  options.name = "none";
  fpt_direct_module* module = nullptr;
  EXPECT_FAILS(test::outcome_of([&] { require_direct(direct_plugin().load("/nowhere/none.pt", &options, &module)); }),
               FPT_ERR_FORMAT, "/nowhere/none.pt cannot be read");
}

TEST(DirectPlugin, ItsWarningsAreThoseOfTheLibrary) {
  static std::string warned;
  direct_plugin();
  set_warning_handler([](const char* text, int64_t length) { warned.append(text, static_cast<std::size_t>(length)); });
  fpt_direct_options options{};
  options.name = "counter";
  fpt_direct_module* module = nullptr;
  ASSERT_OK(test::outcome_of([&] { require_direct(direct_plugin().load("direct_counter.pt", &options, &module)); }));
  std::vector<float> x = {1};
  const fpt_arg input = test::in(x);
  fpt_direct_answer answer{};
  require_direct(direct_plugin().call(module, "keep", 4, &input, nullptr, 1, 0, &answer));
  set_warning_handler(nullptr);
  direct_plugin().release(answer.owner);
  direct_plugin().unload(module);
  EXPECT_NE(warned.find("keep of counter kept input 1"), std::string::npos) << warned;
}

}  // namespace
}  // namespace fpt
