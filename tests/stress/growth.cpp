// SPDX-License-Identifier: MIT
/// Memory stays flat, whatever is called however often.
///
/// FPT_GROWTH_CALLS  calls of each kind, default 20000; errors are made a tenth as often, loads and reloads a
/// thousandth
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "ftn_pytorch.h"

namespace {

long calls_of_each_kind() {
  const char* text = std::getenv("FPT_GROWTH_CALLS");
  return text ? std::atol(text) : 20000;
}

long resident_kilobytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

const std::string& script() {
  static const std::string path = STRESS_SCRIPTS "/growing.py";
  return path;
}

fpt_module load(std::vector<fpt_arg> options = {}) {
  fpt_module handle = 0;
  EXPECT_EQ(fpt_module_load(&handle, 0, script().data(), static_cast<int64_t>(script().size()), options.data(),
                            static_cast<int32_t>(options.size()), nullptr, 0),
            FPT_OK);
  return handle;
}

fpt_arg text(const char* value, const char* name = "") {
  fpt_arg arg;
  fpt_arg_text(&arg, value, static_cast<int64_t>(std::char_traits<char>::length(value)), FPT_IN);
  if (*name) fpt_arg_name(&arg, name, static_cast<int64_t>(std::char_traits<char>::length(name)));
  return arg;
}

class Growth : public testing::Test {
 protected:
  std::vector<double> x_ = std::vector<double>(4096, 1.0), y_ = std::vector<double>(16);
  fpt_module module_ = load();

  ~Growth() override { fpt_module_free(module_); }

  fpt_arg array(double* data, int64_t extent, int32_t access) {
    fpt_arg arg;
    fpt_arg_array(&arg, data, FPT_FLOAT64, 1, &extent, nullptr, access);
    return arg;
  }

  fpt_status call(const char* name, std::vector<fpt_arg> inputs, std::vector<fpt_arg> outputs = {},
                  fpt_results* results = nullptr, fpt_module module = 0) {
    return fpt_module_call(module ? module : module_, name, static_cast<int64_t>(std::char_traits<char>::length(name)),
                           inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(),
                           static_cast<int32_t>(outputs.size()), results);
  }

  /// The first calls may grow whatever has a largest size: caches, arenas, tables.
  template <class Body>
  void expect_flat(long calls, Body&& body, long allowed_kilobytes = 1536) {
    const long warm = std::max(calls / 2, 5L);
    for (long i = 0; i < warm && !HasFailure(); ++i) body(i);
    const long before = resident_kilobytes();
    for (long i = 0; i < calls && !HasFailure(); ++i) body(i);
    EXPECT_LT(resident_kilobytes() - before, allowed_kilobytes) << "kB for " << calls << " calls";
  }
};

TEST_F(Growth, Forward) {
  expect_flat(calls_of_each_kind(), [&](long) {
    fpt_arg in = array(x_.data(), 16, FPT_IN), out = array(y_.data(), 16, FPT_OUT);
    ASSERT_EQ(fpt_module_forward(module_, &in, 1, &out, 1, nullptr, 0), FPT_OK);
  });
}

TEST_F(Growth, AnotherAddressAndLengthEachTime) {
  expect_flat(calls_of_each_kind(), [&](long i) {
    fpt_arg in = array(x_.data() + i % 2000, 1 + i % 1999, FPT_IN);
    ASSERT_EQ(call("nothing", {in}), FPT_OK);
  });
}

TEST_F(Growth, Train) {
  expect_flat(calls_of_each_kind() / 4, [&](long) {
    fpt_arg in = array(x_.data(), 16, FPT_IN), target = array(x_.data() + 16, 16, FPT_IN);
    int32_t completed = 0;
    double loss = 0;
    ASSERT_EQ(fpt_module_train(module_, &in, 1, &target, 1, &completed, &loss), FPT_OK);
  });
}

TEST_F(Growth, CopiesScalarsTextsAndNames) {
  const std::string longer(300, 'x');
  expect_flat(calls_of_each_kind(), [&](long i) {
    fpt_arg copied = array(x_.data(), 100, FPT_COPY), number;
    double value = static_cast<double>(i);
    fpt_arg_array(&number, &value, FPT_FLOAT64, 0, nullptr, nullptr, FPT_IN);
    fpt_arg_name(&copied, "x", 1);
    fpt_arg_name(&number, "n", 1);
    ASSERT_EQ(call("takes_names", {copied, number, text("short", "a"), text(longer.c_str(), "b")}), FPT_OK);
  });
}

TEST_F(Growth, ConversionsAndWritesBack) {
  const fpt_module casting = load({text("float32", "dtype")});
  expect_flat(calls_of_each_kind() / 2, [&](long) {
    ASSERT_EQ(call("doubles", {array(x_.data(), 1000, FPT_OUT)}, {}, nullptr, casting), FPT_OK);
    x_[0] = 1;
  });
  fpt_module_free(casting);
}

TEST_F(Growth, ModeSafe) {
  const fpt_module safe = load({text("safe", "mode")});
  expect_flat(calls_of_each_kind() / 4,
              [&](long) { ASSERT_EQ(call("nothing", {array(x_.data(), 16, FPT_IN)}, {}, nullptr, safe), FPT_OK); });
  fpt_module_free(safe);
}

TEST_F(Growth, ResultsAndTheirTensors) {
  expect_flat(calls_of_each_kind() / 2, [&](long i) {
    static fpt_results results = 0;
    fpt_tensor tensor = 0;
    const char* name = nullptr;
    void* data = nullptr;
    int64_t length = 0, extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
    ASSERT_EQ(call("several", {array(x_.data(), 16, FPT_IN)}, {}, &results), FPT_OK);
    ASSERT_EQ(fpt_results_get(results, 1, &tensor), FPT_OK);
    ASSERT_EQ(fpt_results_data(results, 1, FPT_FLOAT64, 1, &data, extents, strides), FPT_OK);
    ASSERT_EQ(fpt_results_name(results, 2, &name, &length), FPT_OK);
    ASSERT_EQ(fpt_results_text(results, 3, &name, &length), FPT_OK);
    fpt_tensor_free(tensor);
    if (i % 2) fpt_results_free(results);
  });
}

TEST_F(Growth, TensorsAndLists) {
  expect_flat(calls_of_each_kind() / 2, [&](long) {
    fpt_tensor tensor = 0, output = 0;
    fpt_wrap wrap = 0;
    fpt_arg arg = array(x_.data(), 16, FPT_OUT), copied = array(x_.data(), 16, FPT_COPY);
    ASSERT_EQ(fpt_tensor_set(&tensor, &arg), FPT_OK);
    ASSERT_EQ(fpt_tensor_arg(tensor, &arg), FPT_OK);
    ASSERT_EQ(fpt_wrap_create(&wrap), FPT_OK);
    ASSERT_EQ(fpt_wrap_add(wrap, &arg), FPT_OK);
    ASSERT_EQ(fpt_wrap_add(wrap, &copied), FPT_OK);
    ASSERT_EQ(fpt_module_forward_wrap(module_, wrap, &output, 0), FPT_OK);
    fpt_tensor_free(output);
    fpt_tensor_free(tensor);
    fpt_wrap_free(wrap);
  });
}

TEST_F(Growth, Errors) {
  expect_flat(calls_of_each_kind() / 10, [&](long i) {
    fpt_arg wrong = array(y_.data(), 3, FPT_OUT), copied = array(x_.data(), 100, FPT_COPY);
    ASSERT_EQ(call("fails", {array(x_.data(), 1 + i % 100, FPT_IN)}), FPT_ERR_PYTHON);
    ASSERT_EQ(call("ftn_pytorch_forward", {array(x_.data(), 16, FPT_IN)}, {wrong}), FPT_ERR_SHAPE);
    ASSERT_EQ(call("no such function", {copied}), FPT_ERR_HOOK);
  });
}

TEST_F(Growth, LoadsAndFrees) {
  expect_flat(std::max(calls_of_each_kind() / 1000, 50L), [&](long) {
    fpt_module other = load();
    ASSERT_EQ(call("nothing", {array(x_.data(), 16, FPT_IN)}, {}, nullptr, other), FPT_OK);
    fpt_module_free(other);
  });
}

TEST_F(Growth, Reloads) {
  expect_flat(std::max(calls_of_each_kind() / 1000, 50L), [&](long) {
    ASSERT_EQ(fpt_module_reload(module_), FPT_OK);
    ASSERT_EQ(call("nothing", {array(x_.data(), 16, FPT_IN)}), FPT_OK);
  });
}

TEST_F(Growth, LoadsThatFail) {
  const std::string missing = "/nowhere/missing.py";
  expect_flat(std::max(calls_of_each_kind() / 100, 50L), [&](long) {
    fpt_module other = 0;
    const auto length = static_cast<int64_t>(missing.size());
    ASSERT_EQ(fpt_module_load(&other, 0, missing.data(), length, nullptr, 0, nullptr, 0), FPT_ERR_FILE);
  });
}

TEST_F(Growth, ThreadsThatEnd) {
  expect_flat(std::max(calls_of_each_kind() / 100, 200L), [&](long) {
    std::thread([&] { ASSERT_EQ(call("fails", {array(x_.data(), 16, FPT_IN)}), FPT_ERR_PYTHON); }).join();
  });
}

}  // namespace
