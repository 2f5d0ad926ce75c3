// SPDX-License-Identifier: MIT
/// Objects kept between calls are used again only while they are what they were. Every case runs for both frameworks
/// where both can do what it does to its input.
#include "script.hpp"
#include "script/cache.hpp"

namespace fpt {
namespace {

using test::in;
using test::option;
using test::out;
using test::Script;

const char* const torch_script = R"(
import weakref
import torch
from torch.utils.weak import WeakTensorKeyDictionary
kept, seen, means = [], [], WeakTensorKeyDictionary()
class Seen(torch.Tensor): pass
def has_anything(x):
    return (x.requires_grad or x.grad is not None or type(x) is not torch.Tensor or bool(vars(x)) or
            weakref.getweakrefcount(x) > 0)
def total(x): seen.append(id(x)); return float(x.sum())
def both(x, y): return float((x * 2 + y).sum())
def meets(x, action):
    before = float(x.sum()), str(tuple(x.shape)), str(x.dtype), has_anything(x)
    other = torch.full((4,), 9.0, dtype=x.dtype)
    eval(action, globals(), dict(x=x, other=other))
    return str(before)
def same(x): return x
def one_then_other(x, y): return y, x
def noted(x, out): kept.append(has_anything(out)); out.note = 1; out.copy_(x)
)";

const char* const numpy_script = R"(
import numpy
kept, seen = [], []
def total(x): seen.append(id(x)); return float(x.sum())
def both(x, y): return float((x * 2 + y).sum())
def meets(x, action):
    before = float(x.sum()), str(tuple(x.shape)), str(x.dtype), x.flags.writeable
    eval(action, globals(), dict(x=x))
    return str(before)
def same(x): return x
def one_then_other(x, y): return y, x
)";

/// Calls beyond the first two, which make everything afresh.
constexpr int calls = 6;

class CacheTest : public testing::TestWithParam<const char*> {
 protected:
  Script script{GetParam()};
  std::vector<double> x = {1, 2, 3, 4};

  double total(fpt_arg arg) {
    double result = -1;
    EXPECT_OK(script.call("total", {arg}, {out(result)}));
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(With, CacheTest, testing::Values(torch_script, numpy_script),
                         [](const auto& info) { return std::string(info.param == torch_script ? "Torch" : "NumPy"); });

TEST_P(CacheTest, TheObjectOfAnArrayIsUsedAgain) {
  for (int i = 0; i < calls; ++i) total(in(x));
  EXPECT_TRUE(script.truth("len(set(seen[2:])) == 1"));
}

TEST_P(CacheTest, ChangedValuesAreSeen) {
  for (int i = 0; i < calls; ++i) {
    x[0] = i;
    EXPECT_EQ(total(in(x)), i + 9);
  }
}

TEST_P(CacheTest, OneAddressMayHaveAnotherShapeOrStride) {
  for (int i = 0; i < calls; ++i) {
    EXPECT_EQ(total(in(x, {4})), 10);
    EXPECT_EQ(total(in(x, {2, 2})), 10);
    EXPECT_EQ(total(in(x, {3})), 6);
    EXPECT_EQ(total(test::array_arg(x.data(), {2}, FPT_IN, {16})), 4);
    EXPECT_EQ(total(test::array_arg(x.data(), {2}, FPT_IN, {24})), 5);
    EXPECT_EQ(total(in(x, {0})), 0);
  }
}

TEST_P(CacheTest, OneAddressMayHaveAnotherElementType) {
  std::vector<int64_t> n = {1, 2};
  for (int i = 0; i < calls; ++i) {
    fpt_arg integers = in(n), shorts;
    const int64_t extent = 4;
    fpt_arg_array(&shorts, n.data(), FPT_INT32, 1, &extent, nullptr, FPT_IN);
    n[1] = 2 + (int64_t{1} << 32);
    EXPECT_EQ(total(integers), 3.0 + 4294967296.0);
    EXPECT_EQ(total(shorts), 4);
  }
}

TEST_P(CacheTest, ManyArraysTakeTurns) {
  std::vector<std::vector<double>> blocks(100, std::vector<double>(3));
  for (int i = 0; i < calls; ++i)
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      blocks[k][1] = static_cast<double>(i + 10 * static_cast<int>(k));
      ASSERT_EQ(total(in(blocks[k])), blocks[k][1]);
    }
}

TEST_P(CacheTest, OneArrayMayBeTwoArguments) {
  double result = 0;
  for (int i = 0; i < calls; ++i) {
    ASSERT_OK(script.call("both", {in(x), in(x)}, {out(result)}));
    EXPECT_EQ(result, 30);
  }
}

TEST_P(CacheTest, SectionsMayOverlap) {
  double result = 0;
  for (int i = 0; i < calls; ++i) {
    ASSERT_OK(script.call("both", {in(x, {3}), test::array_arg(&x[1], {3})}, {out(result)}));
    EXPECT_EQ(result, 12 + 9);
  }
}

TEST_P(CacheTest, AnInputMayAlsoBeTheOutput) {
  std::vector<double> y = {5, 6, 7, 8};
  for (int i = 0; i < calls; ++i) {
    ASSERT_OK(script.call("same", {in(x)}, {out(x)}));
    EXPECT_EQ(x, (std::vector<double>{1, 2, 3, 4}));
  }
  ASSERT_OK(script.call("one_then_other", {in(x), in(y)}, {out(x), out(y)}));
  EXPECT_EQ(x, (std::vector<double>{5, 6, 7, 8})) << "both results are read before the first output is written";
  EXPECT_EQ(y, (std::vector<double>{1, 2, 3, 4}));
}

TEST_P(CacheTest, InputsAndOutputsOfOneArrayAreToldApart) {
  for (int i = 0; i < calls; ++i) {
    EXPECT_EQ(total(in(x)), 10);
    EXPECT_EQ(total(out(x)), 10);
  }
}

TEST_P(CacheTest, WhatTheScriptKeepsIsNotUsedAgain) {
  test::CollectedWarnings ignored;
  for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("meets", {in(x), in("kept.append(x)")}));
  EXPECT_TRUE(script.truth("len(set(map(id, kept))) == len(kept)"));
  script.truth("kept.clear() is None");
  for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("meets", {in(x), in("kept.append(x[1:])")}));
  EXPECT_TRUE(script.truth("len(set(map(id, kept))) == len(kept)"));
}

long resident_kilobytes() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

TEST_P(CacheTest, AnotherLengthInEachCallDoesNotGrowMemory) {
  const Script forgets(std::string(GetParam()) + "\ndef nothing(x): pass\n");
  std::vector<double> long_array(4096);
  const auto run = [&](int n) {
    for (int i = 0; i < n; ++i) {
      fpt_arg arg = in(long_array, {1 + i % 4096});
      ASSERT_EQ(fpt_module_call(forgets.handle(), "nothing", 7, &arg, 1, nullptr, 0, nullptr), FPT_OK);
    }
  };
  run(5000);
  const long before = resident_kilobytes();
  run(100000);
  EXPECT_LT(resident_kilobytes() - before, 4096) << "kB for 100000 arrays";
}

TEST_P(CacheTest, ModeSafeMakesEverythingAfresh) {
  test::CollectedWarnings ignored;
  const Script safe(GetParam(), {option("mode", "safe")});
  double result = 0;
  for (int i = 0; i < calls; ++i) {
    x[0] = i;
    ASSERT_OK(safe.call("total", {in(x)}, {out(result)}));
    EXPECT_EQ(result, i + 9);
    ASSERT_OK(safe.call("meets", {in(x), in("kept.append(x)")}));
  }
  EXPECT_TRUE(safe.truth("len(set(map(id, kept))) == len(kept)"));
}

/// What a script may do to a tensor without its values being changed, and what would break the next call if the
/// object were used again.
class Mutation : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Mutation, OfAnInputIsGoneInTheNextCall) {
  test::CollectedWarnings ignored;
  const Script script(torch_script);
  std::vector<double> x = {1, 2, 3, 4};
  for (int i = 0; i < calls; ++i) {
    std::string before(100, ' ');
    ASSERT_OK(script.call("meets", {out(x, {2, 2}), in(GetParam().second)}, {out(before)}));
    EXPECT_EQ(trimmed(before.data(), 100), "(10.0, '(2, 2)', 'torch.float64', False)") << "call " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Torch, Mutation,
    testing::Values(
        std::pair{"requires_grad_", "x.requires_grad_()"},
        std::pair{"backward", "(x.requires_grad_() * 2).sum().backward()"},
        std::pair{"gradient", "[x.requires_grad_(), x.sum().backward(), x.requires_grad_(False)]"},
        std::pair{"resize_", "x.resize_(1)"}, std::pair{"t_", "x.t_()"}, std::pair{"unsqueeze_", "x.unsqueeze_(0)"},
        std::pair{"set_", "x.set_(other)"}, std::pair{"data", "setattr(x, 'data', other)"},
        std::pair{"swap_tensors", "torch.utils.swap_tensors(x, other)"},
        std::pair{"attribute", "setattr(x, 'note', 1)"}, std::pair{"class", "setattr(x, '__class__', Seen)"},
        std::pair{"weak_reference", "kept.append(weakref.ref(x))"}, std::pair{"weak_key", "means.__setitem__(x, 1)"},
        std::pair{"kept_in_list", "kept.append(x)"}, std::pair{"kept_view", "kept.append(x.t())"},
        std::pair{"kept_graph", "kept.append((x * torch.ones(2, 2, requires_grad=True)).sum())"},
        std::pair{"kept_slice_of_data", "kept.append(x.data[0])"}),
    [](const auto& info) { return std::string(info.param.first); });

TEST(OutMutation, AnAttributeOfAnOutputIsGoneInTheNextCall) {
  const Script script(torch_script);
  std::vector<double> x = {1, 2, 3, 4}, y(4);
  for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("noted", {in(x)}, {out(y)}));
  EXPECT_EQ(script.text("kept"), "[False, False, False, False, False, False]");
}

/// More arrays of one shape than the cache holds.
class Walk : public testing::TestWithParam<std::pair<const char*, const char*>> {
 protected:
  static constexpr std::size_t blocks = SlotCache::max_entries + 76;
  std::vector<std::vector<double>> values = make_values();

  static std::vector<std::vector<double>> make_values() {
    std::vector<std::vector<double>> values(blocks);
    for (std::size_t k = 0; k < blocks; ++k) values[k] = {1.0 + static_cast<double>(k), 1, 2, 3};
    return values;
  }
  void walk(const Script& script, const char* action) {
    for (std::size_t k = 0; k < blocks; ++k) {
      std::string before(100, ' ');
      const std::string expected = "(" + std::to_string(7 + k) + ".0, '(2, 2)', 'torch.float64', False)";
      ASSERT_OK(script.call("meets", {out(values[k], {2, 2}), in(action)}, {out(before)}));
      ASSERT_EQ(trimmed(before.data(), 100), expected) << action;
    }
  }
};

TEST_P(Walk, MeetsEachArrayAsItIs) {
  test::CollectedWarnings ignored;
  const Script script(torch_script);
  for (int i = 0; i < 2; ++i) walk(script, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(
    Torch, Walk,
    testing::Values(std::pair{"nothing", "None"}, std::pair{"requires_grad_", "x.requires_grad_()"},
                    std::pair{"backward", "(x.requires_grad_() * 2).sum().backward()"},
                    std::pair{"resize_", "x.resize_(1)"}, std::pair{"t_", "x.t_()"}, std::pair{"set_", "x.set_(other)"},
                    std::pair{"data", "setattr(x, 'data', other)"},
                    std::pair{"swap_tensors", "torch.utils.swap_tensors(x, other)"},
                    std::pair{"swap_with_kept", "torch.utils.swap_tensors(x, kept[0]) if kept else kept.append(other)"},
                    std::pair{"storage", "x.untyped_storage().data_ptr()"}, std::pair{"version", "x.mul_(1)"}),
    [](const auto& info) { return std::string(info.param.first); });

/// What a script may keep of a tensor, and the sum of the array in what was kept.
class Keep : public Walk {};
static_assert(SlotCache::max_entries == 1024, "1100 blocks in the expressions below");

TEST_P(Keep, LeavesTheTensorWhereItIs) {
  test::CollectedWarnings ignored;
  const Script script(std::string(torch_script) +
                      "\nimport weakref\nw = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)\n"
                      "def gradient(y): w.grad = None; y.backward(); return w.grad.sum()\n"
                      "def referent(r, first): return first + 6 if r() is None else r().sum()\n");
  const std::string what = GetParam().first, sum = GetParam().second;
  for (int i = 0; i < 2; ++i) walk(script, ("kept.append(" + what + ")").c_str());
  EXPECT_TRUE(script.truth("[float(" + sum + ") for k in kept] == [7.0 + n for _ in range(2) for n in range(1100)]"))
      << what;
}

INSTANTIATE_TEST_SUITE_P(
    Torch, Keep,
    testing::Values(std::pair{"x", "k.sum()"}, std::pair{"x.t()", "k.sum()"}, std::pair{"x.detach()", "k.sum()"},
                    std::pair{"x.data", "k.sum()"}, std::pair{"x.numpy()", "k.sum()"},
                    std::pair{"memoryview(x.numpy())", "k[0, 0] + k[0, 1] + k[1, 0] + k[1, 1]"},
                    std::pair{"x.untyped_storage()", "torch.empty(0, dtype=torch.float64).set_(k).sum()"},
                    std::pair{"torch.utils.dlpack.to_dlpack(x)", "torch.utils.dlpack.from_dlpack(k).sum()"},
                    std::pair{"(x * w).sum()", "gradient(k)"}, std::pair{"iter(x)", "sum(map(torch.sum, k))"},
                    std::pair{"(weakref.ref(x), x[0, 0].item())", "referent(*k)"}),
    [](const auto& info) { return "N" + std::to_string(info.index); });

TEST_F(Walk, ArraysThatComeAgainKeepTheirObjects) {
  const Script script(std::string(torch_script) +
                      "\nids, again = {}, set()\ndef meet(x):\n"
                      "  if ids.get(x.data_ptr()) == id(x): again.add(id(x))\n"
                      "  ids[x.data_ptr()] = id(x)\n");
  const auto walk = [&](std::size_t count) {
    script.truth("again.clear() is None");
    for (std::size_t k = 0; k < count; ++k) ASSERT_OK(script.call("meet", {in(values[k], {2, 2})}, {}));
  };
  walk(2);  // make everything afresh
  walk(8);
  walk(8);
  EXPECT_EQ(script.number("len(again)"), 8) << "few arrays are known when they come for the second time";
  constexpr std::size_t many = 800;
  static_assert(many < SlotCache::max_entries);
  for (int i = 0; i < 30; ++i) walk(many);
  walk(many);
  EXPECT_GT(script.number("len(again)"), 0.97 * many) << "many after some walks";
}

TEST_F(Walk, ObjectsOfArraysThatDoNotComeAgainDie) {
  const Script script(std::string(torch_script) +
                      "\nimport weakref\nrefs = []\ndef watch(x): refs.append(weakref.ref(x))\n"
                      "def alive(): return len({id(r()) for r in refs if r() is not None})\n");
  for (std::size_t k = 0; k < blocks; ++k) ASSERT_OK(script.call("watch", {in(values[k], {2, 2})}, {}));
  EXPECT_LT(script.number("alive()"), 100);
  for (int i = 0; i < 30; ++i)
    for (std::size_t k = 0; k < blocks; ++k) ASSERT_OK(script.call("watch", {in(values[k], {2, 2})}, {}));
  EXPECT_GT(script.number("alive()"), SlotCache::max_entries - 200);
  EXPECT_LT(script.number("alive()"), SlotCache::max_entries + 100) << "bounded";
}

TEST(NumPyMutation, AnArrayOfWhichAViewWasKeptIsMadeAfresh) {
  test::CollectedWarnings ignored;
  const Script script(std::string(numpy_script) +
                      "\nagain, last = [], None\ndef watch(x, keeps):\n  global last\n"
                      "  again.append(last == id(x)); last = id(x)\n  if keeps: kept.append(x[1:])\n");
  std::vector<double> x = {1, 2, 3, 4};
  for (const bool keeps : {false, true}) {
    script.truth("again.clear() is None");
    for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("watch", {in(x), in(keeps)}));
    EXPECT_TRUE(script.truth(keeps ? "not any(again[1:])" : "again[-1]")) << script.text("again");
  }
}

TEST(NumPyMutation, AWeakReferenceIsOfTheArrayOfOneCall) {
  const Script script(std::string(numpy_script) +
                      "\nimport weakref\nlast = lambda: None\ndef watch(x):\n  global last\n"
                      "  seen.append(last() is x); last = weakref.ref(x)\n");
  std::vector<double> x = {1, 2, 3, 4};
  for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("watch", {in(x)}));
  EXPECT_EQ(script.text("seen"), "[False, False, False, False, False, False]");
}

TEST(NumPyMutation, OfShapeOrTypeIsGoneInTheNextCall) {
  const Script script(numpy_script);
  std::vector<double> x = {1, 2, 3, 4};
  for (const char* action : {"setattr(x, 'shape', (4,))", "setattr(x, 'dtype', 'int64')", "x.setflags(align=False)"})
    for (int i = 0; i < calls; ++i) {
      std::string before(100, ' ');
      ASSERT_OK(script.call("meets", {in(x, {2, 2}), in(action)}, {out(before)}));
      EXPECT_EQ(trimmed(before.data(), 100), "(10.0, '(2, 2)', 'float64', False)") << action << ", call " << i;
    }
}

TEST(NumPyMutation, AnOutputThatTheScriptLocksIsWritableInTheNextCall) {
  const Script script("import numpy\ndef lock(x): x += 1; x.flags.writeable = False\n");
  std::vector<double> x = {1, 2, 3, 4};
  for (int i = 0; i < calls; ++i) ASSERT_OK(script.call("lock", {out(x)})) << "call " << i;
  EXPECT_EQ(x[0], 1 + calls);
}

}  // namespace
}  // namespace fpt
