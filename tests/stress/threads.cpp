// SPDX-License-Identifier: MIT
/// Many threads do everything at once: threads that Python never saw, teams of OpenMP, threads of the script.
///
/// FPT_THREADS_SECONDS  how long each case runs, default 1
#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "ftn_pytorch.h"

namespace {

constexpr int threads = 6;

std::string script() { return STRESS_SCRIPTS "/threaded.py"; }

fpt_module load() {
  const std::string file = script();
  fpt_module handle = 0;
  EXPECT_EQ(fpt_module_load(&handle, 0, file.data(), static_cast<int64_t>(file.size()), nullptr, 0, nullptr, 0),
            FPT_OK);
  return handle;
}

std::string error() {
  const char* text = nullptr;
  int64_t length = 0;
  fpt_error_text(&text, &length);
  return std::string(text, static_cast<std::size_t>(length));
}

fpt_arg array(double* data, int64_t extent, int32_t access) {
  fpt_arg arg;
  fpt_arg_array(&arg, data, FPT_FLOAT64, 1, &extent, nullptr, access);
  return arg;
}

fpt_status call(fpt_module module, const char* name, std::vector<fpt_arg> inputs, std::vector<fpt_arg> outputs = {},
                fpt_results* results = nullptr) {
  return fpt_module_call(module, name, static_cast<int64_t>(std::char_traits<char>::length(name)), inputs.data(),
                         static_cast<int32_t>(inputs.size()), outputs.data(), static_cast<int32_t>(outputs.size()),
                         results);
}

/// Numbers that are wrong, statuses that should not be; printed once, counted always.
std::atomic<long> wrong{0}, calls{0};

void expect(bool good, const char* what) {
  ++calls;
  if (!good && wrong++ < 5) std::cerr << what << ": " << error() << std::endl;
}

double number(fpt_module module, const char* name) {
  double value = -1;
  expect(call(module, name, {}, {array(&value, 1, FPT_OUT)}) == FPT_OK, name);
  return value;
}

/// One of everything, with numbers that are looked at.
void work(fpt_module module, int thread, long round) {
  std::vector<double> x(32, thread + 1.0), y(32, -1), target(32, 2.0);
  fpt_arg in = array(x.data(), 32, FPT_IN), out = array(y.data(), 32, FPT_OUT), goal = array(target.data(), 32, FPT_IN);
  switch (round % 5) {
    case 0:
      expect(fpt_module_forward(module, &in, 1, &out, 1, nullptr, 0) == FPT_OK, "forward");
      return expect(y[0] == 3 * x[0] + 1 && y[31] == y[0], "result of forward");
    case 1: {
      int32_t completed = -1;
      double loss = std::nan("");
      expect(fpt_module_train(module, &in, 1, &goal, 1, &completed, &loss) == FPT_OK, "train");
      return expect(completed == 0 && std::isfinite(loss), "result of train");
    }
    case 2:
      expect(call(module, "fails", {in}) == FPT_ERR_PYTHON, "fails");
      return expect(error().find("thread " + std::to_string(thread + 1)) != std::string::npos, "text of this thread");
    case 3: {
      fpt_results results = 0;
      void* data = nullptr;
      int64_t extents[FPT_MAX_RANK], strides[FPT_MAX_RANK];
      expect(call(module, "named", {in}, {}, &results) == FPT_OK, "named");
      expect(fpt_results_data(results, 1, FPT_FLOAT64, 1, &data, extents, strides) == FPT_OK, "results_data");
      expect(data && static_cast<double*>(data)[31] == 2 * x[0], "named result");
      return fpt_results_free(results);
    }
    default: {
      fpt_tensor tensor = 0, output = 0;
      fpt_wrap wrap = 0;
      expect(fpt_tensor_set(&tensor, &in) == FPT_OK && fpt_wrap_create(&wrap) == FPT_OK, "tensor and list");
      fpt_tensor_arg(tensor, &in);
      expect(fpt_wrap_add(wrap, &in) == FPT_OK, "wrap_add");
      expect(fpt_module_forward_wrap(module, wrap, &output, 0) == FPT_OK, "forward_wrap");
      fpt_tensor_free(output);
      fpt_tensor_free(tensor);
      fpt_wrap_free(wrap);
    }
  }
}

class Threads : public testing::Test {
 protected:
  Threads() { wrong = calls = 0; }
  ~Threads() override {
    EXPECT_EQ(wrong, 0);
    std::cout << calls << " checks" << std::endl;
  }

  /// Run `body(thread, round)` in threads of our own until the time is up.
  static void run(const std::function<void(int, long)>& body) {
    const char* seconds = std::getenv("FPT_THREADS_SECONDS");
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds ? std::atoi(seconds) : 1);
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        for (long i = 0; std::chrono::steady_clock::now() < end; ++i) body(t, i);
      });
    for (std::thread& thread : running) thread.join();
  }
};

TEST_F(Threads, ShareOneModule) {
  const fpt_module module = load();
  run([&](int t, long i) { work(module, t, t + i); });
  fpt_module_free(module);
}

TEST_F(Threads, HaveAModuleEachThatTheyReloadAndFree) {
  fpt_module modules[threads] = {};
  run([&](int t, long i) {
    fpt_module& module = modules[t];
    if (i % 100 == 0) {
      fpt_module_free(module);
      module = load();
    }
    if (i % 37 == 0) expect(fpt_module_reload(module) == FPT_OK, "reload");
    work(module, t, i);
  });
  for (const fpt_module module : modules) fpt_module_free(module);
}

TEST_F(Threads, ReloadAModuleThatOthersAreCalling) {
  const fpt_module module = load();
  run([&](int t, long i) {
    if (t == 0 && i % 20 == 0)
      expect(fpt_module_reload(module) == FPT_OK, "reload");
    else
      work(module, t, i);
  });
  fpt_module_free(module);
}

TEST_F(Threads, ComeAndGo) {
  const fpt_module module = load();
  run([&](int t, long i) { std::thread([&] { work(module, t, i); }).join(); });
  fpt_module_free(module);
}

TEST_F(Threads, OfATeamOfOpenMP) {
  const fpt_module module = load();
  omp_set_num_threads(threads);
  run([&](int t, long) {
    if (t > 1) return;  // two threads with a team each, which torch has as well
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#pragma omp parallel for num_threads(4)
    for (int i = 0; i < 20; ++i) work(module, omp_get_thread_num(), i);
    expect(omp_get_max_threads() >= 1 && fegetexcept() == (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW), "traps of a team");
    fedisableexcept(FE_ALL_EXCEPT);
  });
  fpt_module_free(module);
}

TEST_F(Threads, OfTheScriptRunWhileTheProgramCalls) {
  const fpt_module module = load();
  ASSERT_EQ(call(module, "start_threads", {}), FPT_OK);
  const double before = number(module, "turns");
  run([&](int t, long i) { work(module, t, i); });
  EXPECT_GT(number(module, "turns"), before);
  // and while it computes: nobody holds the lock
  const double between = number(module, "turns");
  volatile double sum = 0;
  while (number(module, "turns") < between + 100)
    for (int i = 0; i < 100000; ++i) sum = sum + i;
  ASSERT_EQ(call(module, "stop_threads", {}), FPT_OK);
  fpt_module_free(module);
}

TEST_F(Threads, GoBackwardThroughGraphsOfTheirOwn) {
  // autograd has threads of its own, which must get the lock while ours wait
  const fpt_module module = load();
  run([&](int t, long) {
    std::vector<double> x(8, t + 1.0), gradient(8);
    expect(call(module, "gradient", {array(x.data(), 8, FPT_IN)}, {array(gradient.data(), 8, FPT_OUT)}) == FPT_OK,
           "gradient");
    expect(std::abs(gradient[3] - 3 * x[3] * x[3]) < 1e-9, "number of the gradient");
  });
  fpt_module_free(module);
}

TEST_F(Threads, HaveWorkersThatLoadData) {
  const fpt_module module = load();
  std::thread loading([&] { expect(number(module, "load_data") == 45, "sum of what was loaded"); });
  for (long i = 0; i < 200; ++i) work(module, 0, i);
  loading.join();
  fpt_module_free(module);
}

TEST_F(Threads, CallWhatTorchCompiles) {
  if (!std::getenv("FPT_THREADS_COMPILE"))
    GTEST_SKIP() << "takes a minute: FPT_THREADS_COMPILE=1, as make stress sets it";
  const fpt_module module = load();
  std::vector<std::thread> running;
  for (int t = 0; t < 3; ++t)
    running.emplace_back([&, t] {
      std::vector<double> x(16, t), y(16, -1);
      for (int i = 0; i < 20; ++i) {
        expect(call(module, "compiled", {array(x.data(), 16, FPT_IN)}, {array(y.data(), 16, FPT_OUT)}) == FPT_OK,
               "compiled");
        expect(std::abs(y[5] - (std::sin(x[5]) + 1)) < 1e-12, "number of what was compiled");
      }
    });
  for (std::thread& thread : running) thread.join();
  fpt_module_free(module);
}

}  // namespace
