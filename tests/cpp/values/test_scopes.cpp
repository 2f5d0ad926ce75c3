// SPDX-License-Identifier: MIT
/// Scopes, owners and names of tensors by their handles.
#include <malloc.h>

#include <string_view>
#include <thread>

#include "python/interpreter.hpp"
#include "script.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

using test::out;
using test::outcome;

using Doubles = std::vector<double>;

struct Scope {
  fpt_scope handle = 0;
  explicit Scope(std::string_view name = "") { begin(name); }
  ~Scope() { (void)fpt_scope_end(handle); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  void begin(std::string_view name = "") {
    EXPECT_EQ(fpt_scope_begin(&handle, name.data(), static_cast<int64_t>(name.size())), FPT_OK);
  }
  test::Outcome end() const { return outcome(fpt_scope_end(handle)); }
};

struct ScopeTest : testing::Test {
  Doubles x = {1, 2};

  fpt_tensor made() {
    fpt_tensor handle = 0;
    fpt_arg arg = out(x);
    EXPECT_EQ(fpt_tensor_set(&handle, &arg), FPT_OK);
    return handle;
  }
  static test::Outcome used(fpt_tensor tensor) {
    fpt_arg arg;
    return outcome(fpt_tensor_arg(tensor, &arg));
  }
};

TEST_F(ScopeTest, IsOpenOnItsThread) {
  EXPECT_EQ(fpt_scope_is_open(), 0);
  const Scope scope;
  EXPECT_EQ(fpt_scope_is_open(), 1);
  std::thread([] { EXPECT_EQ(fpt_scope_is_open(), 0); }).join();
  ASSERT_OK(scope.end());
  EXPECT_EQ(fpt_scope_is_open(), 0);
}

TEST_F(ScopeTest, EndsWhatWasMadeInItAndNothingElse) {
  const test::Tensor before(out(x));
  const Scope scope("step");
  const fpt_tensor inside = made();
  EXPECT_OK(used(inside));
  ASSERT_OK(scope.end());
  EXPECT_FAILS(used(inside), FPT_ERR_FREED, "of the scope \"step\", which has ended");
  EXPECT_OK(used(before.handle));
}

TEST_F(ScopeTest, IsNamedByItsOwnTensorsOnly) {
  const Scope one("one"), two("two");
  const fpt_tensor inner = made();
  ASSERT_OK(two.end());
  const fpt_tensor outer = made();
  ASSERT_OK(one.end());
  EXPECT_FAILS(used(inner), FPT_ERR_FREED, "\"two\"");
  EXPECT_FAILS(used(outer), FPT_ERR_FREED, "\"one\"");
}

TEST_F(ScopeTest, TellsATensorThatWasFreedFromOneThatEnded) {
  const Scope scope("step");
  const fpt_tensor freed = made(), ended = made();
  fpt_tensor_free(freed);
  ASSERT_OK(scope.end());
  EXPECT_FAILS(used(freed), FPT_ERR_FREED, "has been freed");
  EXPECT_FAILS(used(ended), FPT_ERR_FREED, "which has ended");
}

TEST_F(ScopeTest, IsForgottenWhenManyOthersHadThePlace) {
  const Scope scope("step");
  const fpt_tensor ended = made();
  ASSERT_OK(scope.end());
  for (int i = 0; i < 5000; ++i) fpt_tensor_free(made());
  EXPECT_FAILS(used(ended), FPT_ERR_FREED, "has been freed");
}

TEST_F(ScopeTest, OfAnotherThreadCannotBeUsed) {
  const Scope scope;
  const fpt_tensor tensor = made();
  std::thread([&] {
    EXPECT_FAILS(outcome(fpt_scope_end(scope.handle)), FPT_ERR_ARGUMENT, "not open on this thread");
    EXPECT_FAILS(outcome(fpt_scope_keep(scope.handle, tensor)), FPT_ERR_ARGUMENT, "not open on this thread");
    EXPECT_FAILS(outcome(fpt_scope_gradients(scope.handle, 0)), FPT_ERR_ARGUMENT, "not open on this thread");
    EXPECT_OK(used(tensor)) << "its tensors can";
  }).join();
  ASSERT_OK(scope.end());
  EXPECT_FAILS(scope.end(), FPT_ERR_ARGUMENT, "call begin first");
}

TEST_F(ScopeTest, EndsBesideOtherThreads) {
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([this] {
      for (int i = 0; i < 500; ++i) {
        const Scope scope;
        const fpt_tensor tensor = made();
        EXPECT_OK(used(tensor));
        EXPECT_OK(scope.end());
        EXPECT_EQ(used(tensor).status, FPT_ERR_FREED);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ScopeTest, KeepsForTheScopeOutsideOrForEver) {
  const Scope outer;
  Scope inner;
  const fpt_tensor tensor = made();
  EXPECT_OK(outcome(fpt_scope_keep(inner.handle, tensor)));
  EXPECT_OK(outcome(fpt_scope_keep(inner.handle, tensor))) << "again";
  ASSERT_OK(inner.end());
  ASSERT_OK(used(tensor));
  ASSERT_OK(outcome(fpt_scope_keep(outer.handle, tensor)));
  ASSERT_OK(outer.end());
  EXPECT_OK(used(tensor));
  fpt_tensor_free(tensor);
}

TEST_F(ScopeTest, ThatIsForgottenEndsWithAWarning) {
  const test::CollectedWarnings warnings;
  const Scope outer("outer");
  Scope forgotten("forgotten");
  const fpt_tensor tensor = made();
  ASSERT_OK(outer.end());
  EXPECT_EQ(used(tensor).status, FPT_ERR_FREED);
  EXPECT_NE(warnings.all().find("scope \"forgotten\" was never ended"), std::string::npos) << warnings.all();
  Scope again("again");
  const fpt_tensor first = made();
  again.begin("again");
  EXPECT_EQ(used(first).status, FPT_ERR_FREED);
  EXPECT_NE(warnings.all().find("scope \"again\" begins again"), std::string::npos) << warnings.all();
}

TEST_F(ScopeTest, BeginsWithWhateverNumberTheVariableHad) {
  fpt_scope made_up = 123456789;
  ASSERT_EQ(fpt_scope_begin(&made_up, "", 0), FPT_OK);
  EXPECT_NE(made_up, 123456789);
  EXPECT_EQ(fpt_scope_end(made_up), FPT_OK);
}

TEST_F(ScopeTest, AHandleOfAnotherKindIsNoScope) {
  const test::Tensor tensor(out(x));
  const Scope scope;
  EXPECT_FAILS(outcome(fpt_scope_end(tensor.handle)), FPT_ERR_ARGUMENT, "not that of a scope");
  EXPECT_OK(scope.end());
}

TEST_F(ScopeTest, KeepsNewContentsWhereTheHandleWasMade) {
  const test::Tensor before(out(x));
  fpt_tensor handle = before.handle;
  const Scope scope;
  Doubles y = {3};
  fpt_arg arg = out(y);
  ASSERT_EQ(fpt_tensor_set(&handle, &arg), FPT_OK);
  EXPECT_EQ(handle, before.handle);
  ASSERT_OK(scope.end());
  EXPECT_OK(used(handle));
}

TEST_F(ScopeTest, EndsQuietlyWithTheVariableThatBeganIt) {
  const test::CollectedWarnings warnings;
  const Scope outer;
  const fpt_tensor before = made();
  Scope left, inside;
  const fpt_tensor tensor = made();
  const fpt_scope copy = left.handle;
  fpt_scope_leave(&copy);
  EXPECT_OK(used(tensor)) << "a copy of the variable has not begun it";
  fpt_scope_leave(reinterpret_cast<fpt_scope*>(std::uintptr_t{8}));
  std::thread([&] { fpt_scope_leave(&left.handle); }).join();
  EXPECT_OK(used(tensor)) << "it is open on this thread";
  fpt_scope_leave(&left.handle);
  EXPECT_EQ(used(tensor).status, FPT_ERR_FREED);
  EXPECT_FAILS(inside.end(), FPT_ERR_ARGUMENT, "call begin first");
  EXPECT_OK(used(before));
  fpt_scope_leave(&left.handle);
  EXPECT_EQ(warnings.all(), "");
  ASSERT_OK(outer.end());
}

TEST_F(ScopeTest, KeepsTensorsOfScopesInside) {
  const Scope outside, outer, inner;
  const fpt_tensor tensor = made();
  EXPECT_OK(outcome(fpt_scope_keep(outer.handle, tensor)));
  ASSERT_OK(inner.end());
  ASSERT_OK(outer.end());
  EXPECT_OK(used(tensor));
  ASSERT_OK(outside.end());
  EXPECT_EQ(used(tensor).status, FPT_ERR_FREED);
}

TEST_F(ScopeTest, NamesAreNotKeptForEver) {
  const auto use = [this](int i) {
    const Scope scope("step " + std::to_string(i));
    made();
    EXPECT_OK(scope.end());
  };
  for (int i = 0; i < 2000; ++i) use(i);
  const std::size_t before = mallinfo2().uordblks;
  for (int i = 2000; i < 20000; ++i) use(i);
  EXPECT_LT(mallinfo2().uordblks, before + (512u << 10));
}

TEST_F(ScopeTest, TakesNoMemoryForTensorsThatAreGone) {
  const Scope scope("run");
  std::vector<fpt_tensor> alive;
  const auto make_and_free = [&](int count) {
    for (int i = 0; i < count; ++i) fpt_tensor_free(made());
  };
  for (int i = 0; i < 100; ++i, make_and_free(20)) alive.push_back(made());
  const std::size_t before = mallinfo2().uordblks;
  make_and_free(100000);
  EXPECT_LT(mallinfo2().uordblks, before + (64u << 10));
  for (const fpt_tensor tensor : alive) ASSERT_OK(used(tensor));
  ASSERT_OK(scope.end());
  for (const fpt_tensor tensor : alive) ASSERT_EQ(used(tensor).status, FPT_ERR_FREED);
}

TEST_F(ScopeTest, LeavesAutocastWhereGradientsCannotBeRestored) {
  const test::Script script("import torch\n");
  const auto run = [](const char* source) {
    const InterpreterLock gil;
    ASSERT_EQ(PyRun_SimpleString(source), 0);
  };
  run("import torch\n");
  const Scope scope;
  ASSERT_OK(outcome(fpt_scope_autocast(scope.handle, "cpu", 3, "", 0)));
  ASSERT_OK(outcome(fpt_scope_gradients(scope.handle, 0)));
  run("usual = torch._C._set_grad_enabled\n"
      "def broken(mode): raise ValueError('no way back')\n"
      "torch._C._set_grad_enabled = broken\n");
  const test::Outcome end = scope.end();
  run("torch._C._set_grad_enabled = usual\n"
      "torch.set_grad_enabled(True)\n");
  EXPECT_FAILS(end, FPT_ERR_PYTHON, "no way back");
  run("assert not torch.is_autocast_enabled('cpu')\n");
  EXPECT_EQ(fpt_scope_is_open(), 0);
}

struct OwnerTest : ScopeTest {
  /// A variable that owns a tensor.
  void owns(fpt_tensor& variable) {
    variable = made();
    fpt_tensor_own(&variable, 0);
  }

  fpt_tensor home = 0, elsewhere = 0;
};

TEST_F(OwnerTest, ReleasesItsTensorAtItsAddressOnly) {
  owns(home);
  const fpt_tensor handle = elsewhere = home;  // as a compiler copies it
  fpt_tensor_end_owner(&elsewhere);
  EXPECT_OK(used(handle));
  EXPECT_EQ(elsewhere, handle);
  fpt_tensor_end_owner(&home);
  EXPECT_FAILS(used(handle), FPT_ERR_FREED, "has been freed");
  EXPECT_EQ(home, 0);
  fpt_tensor_end_owner(&home);
}

TEST_F(OwnerTest, WithoutOneATensorLives) {
  home = made();
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(home));
  fpt_tensor_free(home);
}

TEST_F(OwnerTest, IsNotReadBeforeItOwnsATensor) {
  owns(elsewhere);
  fpt_tensor_end_owner(reinterpret_cast<fpt_tensor*>(std::uintptr_t{8}));
  fpt_tensor_end_owner(&elsewhere);
}

TEST_F(OwnerTest, DoesNotReleaseWhatAnotherVariableAtItsAddressNames) {
  owns(home);
  const fpt_tensor moved = home;  // and the variable is gone, untold
  home = 0;
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(moved));
  home = made();
  fpt_tensor_own(&home, 0);
  EXPECT_OK(used(moved));
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(moved));
  fpt_tensor_free(moved);
}

TEST_F(OwnerTest, IsTheLatestOne) {
  owns(home);
  const fpt_tensor handle = elsewhere = home;
  fpt_tensor_own(&elsewhere, 0);
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(handle));
  fpt_tensor_end_owner(&elsewhere);
  EXPECT_EQ(used(handle).status, FPT_ERR_FREED);
}

TEST_F(OwnerTest, ReleasesWhatItNamedBefore) {
  owns(home);
  const fpt_tensor first = home;
  owns(home);
  EXPECT_OK(used(first)) << "that was another variable";
  const fpt_tensor second = home;
  home = made();
  fpt_tensor_own(&home, second);
  EXPECT_EQ(used(second).status, FPT_ERR_FREED);
  const fpt_tensor third = home;
  home = made();
  fpt_tensor_disown(&home, third);
  EXPECT_EQ(used(third).status, FPT_ERR_FREED);
  const fpt_tensor fourth = home;
  fpt_tensor_disown(&home, fourth);
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(fourth)) << "the variable does not own it";
  fpt_tensor_free(first);
  fpt_tensor_free(fourth);
}

TEST_F(OwnerTest, LeavesItsTensorToTheScopeInWhichItEnds) {
  owns(home);
  const fpt_tensor handle = home;
  const Scope scope;
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(handle)) << "nothing dies within a scope";
  ASSERT_OK(scope.end());
  EXPECT_FAILS(used(handle), FPT_ERR_FREED, "which has ended");
}

TEST_F(OwnerTest, DoesNotComeAboutWithinAScope) {
  const Scope scope;
  owns(home);
  const fpt_tensor handle = home;
  EXPECT_OK(outcome(fpt_scope_keep(scope.handle, home)));
  ASSERT_OK(scope.end());
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(handle));
  fpt_tensor_free(handle);
}

TEST_F(OwnerTest, DoesNotReleaseOtherNames) {
  owns(home);
  fpt_tensor other = 0;
  ASSERT_EQ(fpt_tensor_assign(&other, home), FPT_OK);
  EXPECT_NE(other, home);
  fpt_tensor_end_owner(&home);
  EXPECT_OK(used(other));
  fpt_tensor_free(other);
}

}  // namespace
}  // namespace fpt
