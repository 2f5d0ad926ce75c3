// SPDX-License-Identifier: MIT
/// The plug-in by its table, as the core uses it, with the models of tests/fortran/scripts/make_direct_models.py.
#include <dlfcn.h>

#include <array>
#include <thread>

#include "direct/fpt_direct.h"
#include "support.hpp"

namespace fpt::test {
namespace {

const fpt_direct_table& plugin() {
  static const fpt_direct_table* table = [] {
    void* library = dlopen(std::getenv("FPT_TEST_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
    EXPECT_NE(library, nullptr) << dlerror();
    return reinterpret_cast<decltype(&fpt_direct_table_get)>(dlsym(library, FPT_DIRECT_SYMBOL))();
  }();
  return *table;
}

Outcome outcome(fpt_status status) { return {status, status == FPT_OK ? "" : plugin().error_text()}; }

/// A loaded model; values of its latest answer.
class Loaded {
 public:
  explicit Loaded(const std::string& name, fpt_direct_options options = {}) {
    options.name = name.c_str();
    EXPECT_OK(outcome(plugin().load(("direct_" + name + ".pt").c_str(), &options, &module)));
  }
  ~Loaded() {
    release();
    plugin().unload(module);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  Outcome call(const char* name, std::vector<fpt_arg> inputs) {
    release();
    return outcome(plugin().call(module, name, name ? static_cast<int64_t>(std::char_traits<char>::length(name)) : 0,
                                 inputs.data(), static_cast<int32_t>(inputs.size()), 0, &answer));
  }
  void release() {
    if (answer.owner) plugin().release(answer.owner);
    answer = {};
  }

  fpt_direct_module* module = nullptr;
  fpt_direct_answer answer{};
};

TEST(Plugin, SpeaksThisVersion) {
  EXPECT_EQ(plugin().version, FPT_DIRECT_VERSION);
  EXPECT_NE(std::string(plugin().torch_library()).find("libtorch_cpu.so"), std::string::npos);
}

TEST(Plugin, FileThatIsNotThere) {
  fpt_direct_options options{};
  options.name = "none";
  fpt_direct_module* module = nullptr;
  EXPECT_FAILS(outcome(plugin().load("none.pt", &options, &module)), FPT_ERR_FORMAT, "none.pt");
  EXPECT_EQ(module, nullptr);
}

TEST(Plugin, TensorIsDescribedInTheOrderOfTheModel) {
  Loaded model("weighted");
  std::vector<float> x = {1, 1, 1, 1, 1, 1};
  ASSERT_OK(model.call(nullptr, {in(x, {3, 2})}));
  ASSERT_EQ(model.answer.count, 1);
  const fpt_direct_value& value = model.answer.values[0];
  EXPECT_EQ(value.kind, FPT_DIRECT_TENSOR);
  EXPECT_EQ(value.dtype, FPT_FLOAT32);
  EXPECT_EQ(value.rank, 2);
  EXPECT_EQ(value.extents[0], 2);
  EXPECT_EQ(value.strides[0], 12);
  EXPECT_EQ(static_cast<float*>(value.data)[2], 3);
}

TEST(Plugin, NewContentsOfAKnownArrayAreSeen) {
  Loaded model("weighted");
  std::vector<double> x = {1, 2};
  for (int i = 0; i < 4; ++i) {
    x[1] = i;
    ASSERT_OK(model.call(nullptr, {in(x)}));
    EXPECT_EQ(static_cast<double*>(model.answer.values[0].data)[1], 2 * i);
  }
}

TEST(Plugin, AnswerOutlivesItsModelAndItsThread) {
  fpt_direct_answer answer{};
  std::vector<float> x = {1, 2};
  {
    Loaded model("weighted");
    std::thread([&] {
      EXPECT_OK(model.call(nullptr, {in(x)}));
      std::swap(answer, model.answer);
    }).join();
  }
  ASSERT_EQ(answer.count, 1);
  EXPECT_EQ(static_cast<float*>(answer.values[0].data)[1], 4);
  plugin().release(answer.owner);
}

TEST(Plugin, TextOfAFailureBelongsToItsThread) {
  Loaded model("two");
  EXPECT_FAILS(model.call("missing", {}), FPT_ERR_HOOK, "missing");
  std::thread([&] { EXPECT_FAILS(model.call("absent", {}), FPT_ERR_HOOK, "absent"); }).join();
  EXPECT_NE(std::string(plugin().error_text()).find("missing"), std::string::npos);
}

TEST(Plugin, KeptInputIsReportedOnceAndNotUsedAgain) {
  static std::string warned;
  plugin().on_warning([](const char* text, int64_t length) { warned.append(text, static_cast<std::size_t>(length)); });
  Loaded model("counter");
  std::vector<float> x = {1, 2};
  ASSERT_OK(model.call("keep", {in(x)}));
  EXPECT_NE(warned.find("keep of counter kept input 1"), std::string::npos) << warned;
  warned.clear();
  ASSERT_OK(model.call("keep", {in(x)}));
  EXPECT_EQ(warned, "");
  plugin().on_warning(nullptr);
}

TEST(Plugin, WhatAModelDoesToItsInputIsGoneInTheNextCall) {
  plugin().on_warning([](const char*, int64_t) {});  // of inputs that are kept
  Loaded model("meddler");
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  for (const char* action : {"turn", "add_axis", "resize", "point_elsewhere", "want_gradient", "keep", "keep_view", "keep_graph"})
    for (int i = 0; i < 5; ++i) {
      x[5] = static_cast<float>(i);
      ASSERT_OK(model.call(action, {out(x, {3, 2})})) << action;
      const auto* found = static_cast<float*>(model.answer.values[0].data);
      const std::vector<float> expected = {15 + x[5], 223, 0, 2};  // the sum, (2,3) of rank 2, no gradient, in this order
      EXPECT_EQ(std::vector<float>(found, found + 4), expected) << action << ", call " << i;
      ASSERT_OK(model.call(nullptr, {in(x, {3, 2})})) << action;
      const auto* after = static_cast<float*>(model.answer.values[0].data);
      EXPECT_EQ(std::vector<float>(after, after + 4), expected) << "forward after " << action << ", call " << i;
    }
  plugin().on_warning(nullptr);
}

TEST(Plugin, AnInputThatIsChangedUnaskedIsRefusedInEveryCall) {
  for (const int32_t mode : {FPT_DIRECT_CHECKED, FPT_DIRECT_SAFE}) {
    fpt_direct_options options{};
    options.mode = mode;
    Loaded model("meddler", options);
    std::vector<float> x = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 5; ++i)
      EXPECT_FAILS(model.call("turn", {in(x, {3, 2})}), FPT_ERR_INPUT_MODIFIED, "pass it so") << "call " << i;
  }
}

TEST(Plugin, HalfPrecisionWidensOnItsWayToTheHost) {
  Loaded model("two");
  std::vector<float> x = {0.5f, 2};
  ASSERT_OK(model.call("half", {in(x)}));
  EXPECT_EQ(model.answer.values[0].dtype, FPT_FLOAT16);
  ASSERT_OK(outcome(plugin().to_host(&model.answer, 0)));
  EXPECT_EQ(model.answer.values[0].dtype, FPT_FLOAT32);
  EXPECT_EQ(static_cast<float*>(model.answer.values[0].data)[1], 2);
}

TEST(Plugin, TensorIsCopiedToStridedMemory) {
  Loaded model("weighted");
  std::vector<float> x = {1, 1}, y(4, 0);
  ASSERT_OK(model.call(nullptr, {in(x)}));
  fpt_direct_value target{};
  target.data = y.data();
  target.dtype = FPT_FLOAT32;
  target.rank = 1;
  target.extents[0] = 2;
  target.strides[0] = 8;
  ASSERT_OK(outcome(plugin().copy_to(&model.answer, 0, &target)));
  EXPECT_EQ(y, (std::vector<float>{1, 0, 2, 0}));
}

TEST(Plugin, DamagedStateOfAnOptimizerIsRefused) {
  Loaded model("mlp");
  const fpt_direct_optimizer settings{1, 0, 0, 1e-3, 0, 0, 0.9, 0.999, 1e-8};
  ASSERT_OK(outcome(plugin().create_optimizer(model.module, &settings)));
  const Folder folder;
  const std::string file = (folder.path() / "trained.pt").string();
  ASSERT_OK(outcome(plugin().save(model.module, file.c_str())));
  std::ifstream stream(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  // of equal lengths, so that the archive stays one
  const std::vector<std::array<std::string, 3>> changes = {
      {"optimizer 1\n", "optimizer 2\n", "later version"},
      {"kind adam", "kind ogre", "ogre"},
      {"kind adam", "eps 0x0p0", "settings are missing"},
      {"lr 0x1.0", "lr -0x10", "lr is -"},
      {"lr 0x1.0", "lr infini", "is no number"},
      {"lr 0x1.0", "lq 0x1.0", "begins with \"lq\""},
      {"parameter 0.bias 0", "parameter 0.bias 4", "left nothing behind"},
      {"parameter 0.bias 0", "parameter 9.bias 0", "no parameter 9.bias"},
      {"\nend\n", "\nfin\n", "begins with \"fin\""},
  };
  for (const auto& [old, replacement, reason] : changes) {
    std::string content = whole;
    const std::size_t at = content.find(old);
    ASSERT_NE(at, std::string::npos) << old;
    content.replace(at, replacement.size(), replacement);
    folder.write("trained.pt", content);
    EXPECT_FAILS(outcome(plugin().restore(model.module, file.c_str())), FPT_ERR_FORMAT, reason);
  }
}

}  // namespace
}  // namespace fpt::test
