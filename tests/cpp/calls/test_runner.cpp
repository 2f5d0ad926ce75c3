// SPDX-License-Identifier: MIT
/// What the door does with a runner, whatever it runs: a runner of the test takes the place of a loaded file.
#include <cfenv>
#include <cstring>

#include "calls/runner.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;

/// Notes what it is asked for, and fails on demand.
class FakeRunner : public Runner {
 public:
  explicit FakeRunner(FakeRunner** self) : self_(self) { *self_ = this; }
  ~FakeRunner() override { *self_ = nullptr; }

  const std::string& backend() const noexcept override { return name_; }
  bool has(const std::string& function) override { return did(function), function == "f"; }
  void reload() override { did("reload"); }
  void save(const std::string& file) override { did("save " + file); }
  void checkpoint(const std::string& folder, int64_t keep, int64_t step) override {
    did(concat("checkpoint ", folder, " ", keep, " ", step));
  }
  int64_t restore(const std::string& file, bool fallback, int64_t step) override {
    did(concat("restore ", file, " ", fallback, " ", step));
    return 12;
  }
  void publish(const std::string&, Runner&) override {}
  void assign(const std::vector<NamedArray>&) override {}
  void run(const CallRequest& request) override {
    const Targets& targets = request.targets;
    did(concat(request.object     ? "create "
               : request.training ? "train "
                                  : "call ",
               request.function, " ", request.inputs.count, " ",
               request.training ? request.goals.count : targets.outputs.count, request.is_list ? " list" : "",
               targets.results ? " results" : "", targets.tensor ? " tensor" : "",
               request.flags != 0 ? " " + std::to_string(request.flags) : ""));
    if (takes_copies) taken = claim_copy(request.inputs[0]);
    if (targets.tensor) *targets.tensor = Tensor::of_arg(request.inputs[0]);
    if (request.object) *request.object = std::make_unique<FakeRunner>(&made);
    if (request.training) *request.training = {1, 0.5};
    if (during) during();
  }
  void set_stream(void* stream, bool waits) override {
    did(concat("stream ", stream == this ? "mine" : "none", waits ? " waits" : ""));
  }
  void wait() override { did("wait"); }

  std::string done;
  FakeRunner* made = nullptr;
  fpt_status failure = FPT_OK;
  bool takes_copies = false;
  Storage taken;
  void (*during)() = nullptr;

 private:
  void did(std::string what) {
    done = std::move(what);
    if (failure != FPT_OK) fail(failure, "as the test wants it");
  }

  FakeRunner** self_;
  const std::string name_ = "fake";
};

fpt_module used_module = 0;

struct RunnerTest : testing::Test {
  FakeRunner* runner = nullptr;  // null once it has been destroyed
  fpt_module module = runners().insert(std::make_unique<FakeRunner>(&runner));
  std::vector<double> x = {1, 2}, y = {-1, -1};

  RunnerTest() { used_module = module; }
  ~RunnerTest() override { fpt_module_free(module); }

  test::Outcome forward(std::vector<fpt_arg> inputs, std::vector<fpt_arg> outputs = {}, fpt_results* results = nullptr,
                        int32_t flags = 0) {
    return outcome(fpt_module_forward(module, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                                      static_cast<int32_t>(outputs.size()), results, flags));
  }
  fpt_arg copy_of_x() { return test::array_arg(x.data(), {2}, FPT_COPY); }
  /// The library has let go of the storage behind an argument.
  static bool is_released(const fpt_arg& arg) {
    return test::outcome_of([&] { claim_copy(arg); }).status == FPT_ERR_FREED;
  }
};

TEST_F(RunnerTest, GetsWhatTheCallSays) {
  fpt_results results = 0;
  ASSERT_OK(forward({in(x), in(1.0)}, {out(y)}, &results, FPT_USE_INFERENCE_MODE));
  EXPECT_EQ(runner->done, concat("call ftn_pytorch_forward 2 1 results ", FPT_USE_INFERENCE_MODE));
  fpt_arg argument = in(x);
  ASSERT_OK(outcome(fpt_module_call(module, "f  ", 3, &argument, 1, nullptr, 0, nullptr)));
  EXPECT_EQ(runner->done, "call f 1 0") << "without trailing blanks";
  int32_t has = -1;
  ASSERT_OK(outcome(fpt_module_has(module, "f ", 2, &has)));
  EXPECT_EQ(has, 1);
  ASSERT_OK(outcome(fpt_module_has(module, "g", 1, &has)));
  EXPECT_EQ(has, 0);
  const char* text = nullptr;
  int64_t length = 0;
  ASSERT_OK(outcome(fpt_module_backend(module, &text, &length)));
  EXPECT_EQ(std::string(text, static_cast<std::size_t>(length)), "fake");
}

TEST_F(RunnerTest, GetsTheStreamOfTheProgram) {
  ASSERT_OK(outcome(fpt_module_set_stream(module, nullptr, runner, 1)));
  EXPECT_EQ(runner->done, "stream mine waits");
  ASSERT_OK(outcome(fpt_module_set_stream(module, nullptr, nullptr, 0)));
  EXPECT_EQ(runner->done, "stream none");
  ASSERT_OK(outcome(fpt_module_wait(module)));
  EXPECT_EQ(runner->done, "wait");
  const int32_t queue = 3;
  EXPECT_FAILS(outcome(fpt_module_set_stream(module, &queue, nullptr, 1)), FPT_ERR_DEVICE, "OpenACC");
}

TEST_F(RunnerTest, AFunctionWithoutANameIsRefused) {
  fpt_tensor tensor = 0;
  fpt_module object = 0;
  for (const char* name : {"", "   "}) {
    const auto length = static_cast<int64_t>(std::strlen(name));
    for (const fpt_status status : {fpt_module_call(module, name, length, nullptr, 0, nullptr, 0, nullptr),
                                    fpt_module_call_tensor(module, name, length, nullptr, 0, &tensor),
                                    fpt_module_create(&object, module, name, length, nullptr, 0)})
      EXPECT_FAILS(outcome(status), FPT_ERR_HOOK, "the name of the function to call is empty");
  }
  EXPECT_EQ(runner->done, "");
}

TEST_F(RunnerTest, NumbersOfArgumentsThatCannotBeAreRefused) {
  fpt_arg args[2] = {in(1.0), in(2.0)};
  fpt_module loaded = 0;
  int32_t completed = 0;
  double loss = 0;
  for (const int32_t wrong : {-1, INT32_MIN, 2}) {
    fpt_arg* given = wrong > 0 ? nullptr : args;
    EXPECT_FAILS(outcome(fpt_module_call(module, "f", 1, given, wrong, nullptr, 0, nullptr)), FPT_ERR_ARGUMENT,
                 "the number of arguments is " + std::to_string(wrong));
    EXPECT_FAILS(outcome(fpt_module_call(module, "f", 1, args, 2, given, wrong, nullptr)), FPT_ERR_ARGUMENT, "number");
    EXPECT_FAILS(outcome(fpt_module_forward(module, given, wrong, nullptr, 0, nullptr, 0)), FPT_ERR_ARGUMENT, "number");
    EXPECT_FAILS(outcome(fpt_module_train(module, args, 2, given, wrong, &completed, &loss)), FPT_ERR_ARGUMENT, "");
    EXPECT_FAILS(outcome(fpt_module_load(&loaded, 0, "x.py", 4, given, wrong, nullptr, 0)), FPT_ERR_ARGUMENT, "number");
    EXPECT_FAILS(outcome(fpt_module_load(&loaded, 0, "x.py", 4, nullptr, 0, given, wrong)), FPT_ERR_ARGUMENT, "number");
  }
  EXPECT_FAILS(outcome(fpt_module_load(nullptr, 0, "x.py", 4, nullptr, 0, nullptr, 0)), FPT_ERR_ARGUMENT,
               "no variable for the module");
}

TEST_F(RunnerTest, GetsNamesOfFilesWithoutTrailingBlanks) {
  ASSERT_OK(outcome(fpt_module_save(module, "state ", 6)));
  EXPECT_EQ(runner->done, "save state");
  ASSERT_OK(outcome(fpt_module_checkpoint(module, "steps  ", 7, 3, -1)));
  EXPECT_EQ(runner->done, "checkpoint steps 3 -1");
  int64_t found = 0;
  ASSERT_OK(outcome(fpt_module_restore(module, "steps", 5, 1, 7, &found)));
  EXPECT_EQ(runner->done, "restore steps 1 7");
  EXPECT_EQ(found, 12);
  ASSERT_OK(outcome(fpt_module_restore(module, "steps", 5, 0, -1, nullptr)));
  ASSERT_OK(outcome(fpt_module_reload(module)));
  EXPECT_EQ(runner->done, "reload");
}

TEST_F(RunnerTest, GetsAListAsOne) {
  fpt_wrap wrap = 0;
  ASSERT_OK(outcome(fpt_wrap_create(&wrap)));
  fpt_arg first = in(x), second = copy_of_x();
  ASSERT_OK(outcome(fpt_wrap_add(wrap, &first)));
  ASSERT_OK(outcome(fpt_wrap_add(wrap, &second)));
  test::Tensor output;
  ASSERT_OK(outcome(fpt_module_forward_wrap(module, wrap, &output.handle, 0)));
  EXPECT_EQ(runner->done, "call ftn_pytorch_forward 2 0 list tensor");
  EXPECT_EQ(fpt_tensor_is_set(output.handle), 1);
  int32_t completed = -1;
  double loss = -1;
  const test::Tensor target(out(y));
  ASSERT_OK(outcome(fpt_module_train_wrap(module, wrap, target.handle, &completed, &loss)));
  EXPECT_EQ(runner->done, "train ftn_pytorch_train 2 1 list");
  EXPECT_EQ(completed, 1);
  EXPECT_EQ(loss, 0.5);
  fpt_wrap_free(wrap);
}

TEST_F(RunnerTest, ItsFailureIsTheStatusOfEachCallAndNothingIsSet) {
  runner->failure = FPT_ERR_DEVICE;
  const auto fails = [](fpt_status status) { EXPECT_FAILS(outcome(status), FPT_ERR_DEVICE, "as the test wants it"); };
  fpt_arg argument = in(x);
  int32_t has = -1, completed = -1;
  int64_t found = -5;
  double loss = -1;
  fpt_results results = 0;
  test::Tensor tensor, target(out(y));
  fpt_wrap wrap = 0;
  ASSERT_OK(outcome(fpt_wrap_create(&wrap)));
  fails(fpt_module_forward(module, &argument, 1, nullptr, 0, &results, 0));
  fails(fpt_module_call(module, "f", 1, &argument, 1, nullptr, 0, &results));
  fails(fpt_module_train(module, &argument, 1, &argument, 1, &completed, &loss));
  fails(fpt_module_train_wrap(module, wrap, target.handle, &completed, &loss));
  fails(fpt_module_forward_wrap(module, wrap, &tensor.handle, 0));
  fails(fpt_module_has(module, "f", 1, &has));
  fails(fpt_module_restore(module, "file", 4, 0, -1, &found));
  fails(fpt_module_save(module, "file", 4));
  fails(fpt_module_checkpoint(module, "file", 4, 3, -1));
  fails(fpt_module_reload(module));
  fpt_wrap_free(wrap);
  EXPECT_EQ(has, -1);
  EXPECT_EQ(completed, -1);
  EXPECT_EQ(loss, -1);
  EXPECT_EQ(found, -5);
  EXPECT_EQ(results, 0);
  EXPECT_EQ(tensor.handle, 0);
}

TEST_F(RunnerTest, CopiesThatItDidNotTakeAreReleasedOnSuccessAndOnFailure) {
  for (const fpt_status status : {FPT_OK, FPT_ERR_DEVICE}) {
    runner->failure = status;
    const fpt_arg input = copy_of_x(), output = copy_of_x();
    EXPECT_EQ(forward({input}, {output}).status, status);
    EXPECT_TRUE(is_released(input)) << status_name(status);
    EXPECT_TRUE(is_released(output)) << status_name(status);
    const fpt_arg example = copy_of_x(), goal = copy_of_x();
    std::vector<fpt_arg> args = {example, goal};
    int32_t completed = -1;
    double loss = -1;
    EXPECT_EQ(fpt_module_train(module, &args[0], 1, &args[1], 1, &completed, &loss), status);
    EXPECT_TRUE(is_released(example) && is_released(goal)) << status_name(status);
  }
}

TEST_F(RunnerTest, CopiesThatItTookAreItsOwn) {
  runner->takes_copies = true;
  const fpt_arg input = copy_of_x();
  EXPECT_OK(forward({input}));
  EXPECT_EQ(static_cast<double*>(runner->taken.get())[1], 2);
}

TEST_F(RunnerTest, CopiesForAModuleThatIsNotThereAreReleased) {
  fpt_arg input = copy_of_x(), output = copy_of_x();
  EXPECT_FAILS(outcome(fpt_module_forward(0, &input, 1, &output, 1, nullptr, 0)), FPT_ERR_NOT_LOADED,
               "call load, or create, first");
  EXPECT_TRUE(is_released(input) && is_released(output));
  fpt_arg option = copy_of_x(), config = copy_of_x();
  fpt_module none = 0;
  EXPECT_NE(fpt_module_load(&none, 0, "file", 4, &option, 1, &config, 1), FPT_OK);
  EXPECT_TRUE(is_released(option) && is_released(config));
}

TEST_F(RunnerTest, LivesUntilACallThatFreesItHasEnded) {
  static FakeRunner* seen;
  seen = runner;
  runner->during = [] {
    fpt_module_free(used_module);
    EXPECT_FAILS(outcome(fpt_module_reload(used_module)), FPT_ERR_FREED, "has been freed");
    EXPECT_EQ(seen->backend(), "fake") << "still there";
  };
  EXPECT_OK(forward({}));
  EXPECT_EQ(runner, nullptr);
}

TEST_F(RunnerTest, RunsInTheFloatingPointStateOfPython) {
  static int inside;
  inside = -1;
  runner->during = [] { inside = fegetexcept(); };
  feenableexcept(FE_DIVBYZERO);
  const test::Outcome done = forward({});
  const int after = fegetexcept();
  fesetenv(FE_DFL_ENV);
  EXPECT_OK(done);
  EXPECT_EQ(inside, 0);
  EXPECT_EQ(after, FE_DIVBYZERO);
}

}  // namespace
}  // namespace fpt
