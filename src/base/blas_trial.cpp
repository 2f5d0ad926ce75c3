// SPDX-License-Identifier: MIT
#include "base/blas_trial.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <complex>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>
#include <string_view>
#include <thread>

#include "base/error.hpp"

namespace fpt {
namespace {

enum class Verdict : int { wrong, wide, right };

/// An integer argument of 4 bytes. What reads 8 bytes finds the same number, or a negative one.
struct Integer {
  std::int64_t word;
  Integer(std::int32_t value, bool poisoned)
      : word(poisoned ? value | std::int64_t(0xF000000000000000) : std::int64_t(value)) {}
};

/// Whole numbers, exact in each type, with room behind for what counts in wider elements.
template <class Number>
struct Numbers {
  Number values[64] = {};
  Numbers(std::initializer_list<int> given = {}) {
    int i = 0;
    for (const int value : given) values[i++] = Number(static_cast<float>(value));
  }
  friend bool operator==(const Numbers& a, const Numbers& b) {
    return std::equal(std::begin(a.values), std::end(a.values), std::begin(b.values));
  }
};

template <class Number>
bool multiplies(void* function, bool poisoned) {
  using Function = void(const char*, const char*, const Integer*, const Integer*, const Integer*, const Number*,
                        const Number*, const Integer*, const Number*, const Integer*, const Number*, Number*,
                        const Integer*, std::size_t, std::size_t);
  const Integer m(3, poisoned), n(2, poisoned), k(2, poisoned);
  const Numbers<Number> one{1}, zero{0}, a{1, 2, 3, 4, 5, 6}, b{7, 8, 9, 10};
  Numbers<Number> c;
  reinterpret_cast<Function*>(function)("N", "N", &m, &n, &k, one.values, a.values, &m, b.values, &k, zero.values,
                                        c.values, &m, 1, 1);
  return c == Numbers<Number>{39, 54, 69, 49, 68, 87};
}

template <class Number>
bool sums(void* function, bool poisoned) {
  using Function = Number(const Integer*, const Number*, const Integer*, const Number*, const Integer*);
  const Integer n(3, poisoned), step(1, poisoned);
  const Numbers<Number> x{1, 2, 3}, y{4, 5, 6};
  return reinterpret_cast<Function*>(function)(&n, x.values, &step, y.values, &step) == Number(32);
}

template <class Number>
bool decomposes(void* function, bool poisoned) {
  using Function = void(const char*, const Integer*, Number*, const Integer*, std::int64_t*, std::size_t);
  const Integer n(2, poisoned);
  Numbers<Number> a{4, 2, 0, 5};
  std::int64_t info = 0;
  reinterpret_cast<Function*>(function)("L", &n, a.values, &n, &info, 1);
  return info == 0 && a == Numbers<Number>{2, 1, 0, 2};
}

using Trial = bool(void* function, bool poisoned);

Trial* trial_of(std::string_view name) {
  static constexpr struct {
    std::string_view name;
    Trial* trial;
  } trials[] = {
      {"sgemm_", multiplies<float>},
      {"dgemm_", multiplies<double>},
      {"cgemm_", multiplies<std::complex<float>>},
      {"zgemm_", multiplies<std::complex<double>>},
      {"sdot_", sums<float>},
      {"ddot_", sums<double>},
      {"spotrf_", decomposes<float>},
      {"dpotrf_", decomposes<double>},
      {"cpotrf_", decomposes<std::complex<float>>},
      {"zpotrf_", decomposes<std::complex<double>>},
  };
  for (const auto& each : trials)
    if (each.name == name) return each.trial;
  return nullptr;
}

/// In memory that parent and child have both.
struct Progress {
  std::size_t function;
  Verdict verdict;
};

/// In the child, whose handlers and output are those of the program.
[[noreturn]] void try_all(const std::vector<ProgramFunction>& functions, volatile Progress& progress) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTERM}) std::signal(signal, SIG_DFL);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) dup2(nowhere, stream);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Trial* const trial = trial_of(functions[i].name);
    if (!trial) continue;
    progress.function = i;
    progress.verdict = Verdict::wrong;
    if (!trial(functions[i].address, false)) _exit(1);
    progress.verdict = Verdict::wide;
    if (!trial(functions[i].address, true)) _exit(1);
  }
  progress.verdict = Verdict::right;
  _exit(0);
}

/// Until a child ends, or is ended because it takes longer than anybody would wait.
void wait_for_child(pid_t child) {
  for (int i = 0; i < 10000; ++i) {
    if (waitpid(child, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace

std::string try_blas(const std::vector<ProgramFunction>& functions) {
  if (functions.empty()) return {};
  void* const shared = mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) fail(FPT_ERR_MEMORY, "no memory to try the BLAS of the program");
  auto& progress = *new (shared) Progress{0, Verdict::right};
  const pid_t child = fork();
  if (child == 0) try_all(functions, progress);
  if (child > 0) wait_for_child(child);
  const Progress found = progress;
  munmap(shared, sizeof(Progress));
  if (child < 0) fail(FPT_ERR_MEMORY, "no process to try the BLAS of the program: ", std::strerror(errno));
  if (found.verdict == Verdict::right) return {};
  const ProgramFunction& function = functions[found.function];
  return concat(function.name, " of ", function.file,
                found.verdict == Verdict::wide ? " takes integers of 8 bytes, and torch gives it such of 4"
                                               : " does not compute what torch's own does");
}

}  // namespace fpt
