// SPDX-License-Identifier: MIT
/// Bodies of the C interface: nothing gets past them, and a failure that cannot be reported is none.
#include <thread>

#include "arrays/arg.hpp"
#include "script.hpp"

namespace fpt {
namespace {

using test::in;
using test::out;
using test::outcome;
using test::Script;

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
  discard_copies(unused);
}

TEST(CApi, ATensorThatIsRefusedLeavesTheOutputsAlone) {
  std::vector<double> x = {3, 1, 2};
  double largest = -1;
  int64_t place = -1;
  fpt_arg inputs[] = {in(x), in(0)}, outputs[] = {out(largest), out(place)};
  fpt_tensor tensor = 0;
  EXPECT_FAILS(outcome(fpt_torch_call("max", 3, inputs, 2, outputs, 2, nullptr, &tensor, 0)), FPT_ERR_RESULT_COUNT,
               "returned 2 results, but one tensor is expected");
  EXPECT_EQ(largest, -1);
  EXPECT_EQ(place, -1);
  EXPECT_EQ(tensor, 0);
  ASSERT_OK(outcome(fpt_torch_call("max", 3, inputs, 2, outputs, 2, nullptr, nullptr, 0)));
  EXPECT_EQ(largest, 3);
  EXPECT_EQ(place, 0);
}

constexpr const char* makes_objects = R"(
import types
import torch
import ftn_pytorch._embed as embed
streams = []
usual = embed.enter_stream, embed.leave_stream
embed.enter_stream = lambda *place: streams.append("entered") or "entered"
embed.leave_stream = lambda entered: streams.append("left " + entered)

def thing(x):
    assert streams == ["entered"], streams
    x.add_(1)
    return types.SimpleNamespace(name="thing", backend="thing", framework="torch", device=None)

def ends():
    embed.enter_stream, embed.leave_stream = usual
    return " ".join(streams)
)";

TEST(CApi, TheNumberOfThreadsIsNotCutOff) {
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, (int64_t{1} << 32) + 1})
    EXPECT_FAILS(outcome(fpt_set_threads(wrong)), FPT_ERR_ARGUMENT,
                 concat("is ", wrong, "; it must be at least 1").c_str());
}

TEST(CApi, ObjectsAreMadeAsFunctionsAreCalled) {
  const Script script(makes_objects, {test::option("dtype", "float32")});
  ASSERT_OK(outcome(fpt_module_set_stream(script.handle(), nullptr, nullptr, 1)));
  std::vector<double> x = {1, 2};
  fpt_arg input = out(x);
  fpt_module thing = 0;
  const test::Outcome made = outcome(fpt_module_create(&thing, script.handle(), "thing", 5, &input, 1));
  std::string streams(40, ' ');
  EXPECT_OK(script.call("ends", {}, {out(streams)}));
  ASSERT_OK(made);
  EXPECT_EQ(x, (std::vector<double>{2, 3})) << "what was converted goes back";
  EXPECT_EQ(streams.substr(0, 20), "entered left entered");
  fpt_module_free(thing);
}

TEST(CApi, NumPyRefusesWhatRequiresGradients) {
  const Script script("import numpy\ndef ftn_pytorch_forward(x): return 2 * numpy.asarray(x)\n");
  std::vector<double> x = {1, 2}, y = {0, 0};
  const test::Tensor tensor(out(x));
  fpt_arg input = tensor.arg();
  ASSERT_OK(outcome(fpt_torch_call("Tensor.requires_grad_", 21, &input, 1, nullptr, 0, nullptr, nullptr, 0)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(script.forward({tensor.arg()}, {out(y)}), FPT_ERR_ARGUMENT, "requires gradients");
    fpt_scope scope = 0;
    ASSERT_OK(outcome(fpt_scope_begin(&scope, "", 0)));
    ASSERT_OK(outcome(fpt_scope_gradients(scope, 0)));
    EXPECT_OK(script.forward({tensor.arg()}, {out(y)}));
    ASSERT_OK(outcome(fpt_scope_end(scope)));
    EXPECT_EQ(y[1], 4);
  }
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
