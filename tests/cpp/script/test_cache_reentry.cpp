// SPDX-License-Identifier: MIT
/// The cache while making an object runs Python code that comes back to it. What runs is the garbage collector, which
/// may begin in any allocation, and calls what a script has registered with it.
#include <functional>
#include <utility>

#include "python/interpreter.hpp"
#include "script.hpp"
#include "script/cache.hpp"

namespace fpt {
namespace {

/// What the collector does when it runs next: once.
std::function<void()> in_collection;

extern "C" void collector_runs() {
  if (in_collection) std::exchange(in_collection, nullptr)();
}

struct CacheReentry : testing::TestWithParam<Framework> {
  // PYFUNCTYPE keeps the lock, a threshold below zero collects at every allocation
  const test::Script script{"import ctypes, gc\nruns = ctypes.PYFUNCTYPE(None)(" +
                            std::to_string(test::address(reinterpret_cast<void*>(collector_runs))) + R"()
def on_collection(phase, info): runs()
usual = gc.get_threshold()
def begin(): gc.callbacks.append(on_collection); gc.set_threshold(-1)
def end(): gc.callbacks.remove(on_collection); gc.set_threshold(*usual)
)"};
  const InterpreterLock gil;
  const ScriptForm form{GetParam(), false, FPT_FLOAT64, false, false};
  std::vector<double> x = {1, 2, 3, 4};
  const Array array = array_of(test::out(x));
  SlotCache cache;
  Ref nested;

  ~CacheReentry() override {
    in_collection = nullptr;
    script.call("end");
  }
  void SetUp() override {
    SlotCache().get(array, form);  // imports the framework
    script.call("begin");
  }
  /// get(), in the midst of which another one for the same array begins and ends.
  Ref get_twice() {
    nested = Ref();
    in_collection = [this] { nested = cache.get(array, form); };
    return cache.get(array, form);
  }
};

INSTANTIATE_TEST_SUITE_P(Frameworks, CacheReentry, testing::Values(Framework::torch, Framework::numpy),
                         [](const auto& info) { return info.param == Framework::torch ? "Torch" : "NumPy"; });

TEST_P(CacheReentry, KeepsOneObjectForAnArray) {
  const char* const situations[] = {"new", "known and in use", "known and in use again"};
  std::vector<Ref> in_use;
  for (const char* situation : situations) {
    Ref object = get_twice();
    // since 3.12 the collector waits for byte code, which is run only where torch has no fast way in
    if (!nested && PY_VERSION_HEX >= 0x030C0000) GTEST_SKIP() << "nothing runs while the object is made";
    ASSERT_TRUE(nested) << situation;
    EXPECT_NE(nested.get(), object.get()) << situation;
    EXPECT_EQ(Py_REFCNT(nested.get()), 1) << situation << ": the cache kept both";
    in_use.push_back(std::move(object));
  }
  const PyObject* last = in_use.back().get();
  in_use.clear();
  EXPECT_EQ(cache.get(array, form).get(), last);
}

}  // namespace
}  // namespace fpt
