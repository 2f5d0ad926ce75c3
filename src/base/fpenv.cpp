// SPDX-License-Identifier: MIT
#include "base/fpenv.hpp"

#include <dlfcn.h>

#include <atomic>

#include "base/thread_stacks.hpp"

namespace fpt {
namespace {

#if defined(__x86_64__)

constexpr uint32_t default_mxcsr = 0x1F80;  // all masked, round to nearest, no flush to zero, no flags
constexpr uint32_t mxcsr_modes = 0xFFC0;    // everything but the sticky flags
constexpr uint32_t mxcsr_masks = 0x1F80;
constexpr uint16_t default_control = 0x037F;  // x87: all masked, extended precision
constexpr uint16_t x87_flags = 0x003F;

uint16_t x87_status() noexcept {
  uint16_t value;
  __asm__ volatile("fnstsw %0" : "=m"(value));
  return value;
}

FloatingPoint read_state() noexcept {
  FloatingPoint state;
  __asm__ volatile("stmxcsr %0" : "=m"(state.mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(state.control));
  state.status = x87_status();
  return state;
}

void set_default(const FloatingPoint& now) noexcept {
  // sticky flags alone are no reason to write the register, which takes longer than all the rest: they are nearly
  // always set, and Python does not look at them
  if ((now.mxcsr & mxcsr_modes) != default_mxcsr) {
    const uint32_t value = default_mxcsr;
    __asm__ volatile("ldmxcsr %0" : : "m"(value));
  }
  if (now.control != default_control) {
    const uint16_t value = default_control;
    __asm__ volatile("fldcw %0" : : "m"(value));
  }
}

void restore(const FloatingPoint& saved) noexcept {
  // writing without looking: reading the register takes 5 ns, writing the value it has less than 1
  __asm__ volatile("ldmxcsr %0" : : "m"(saved.mxcsr));
  uint16_t control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  if (((x87_status() ^ saved.status) & x87_flags) || control != saved.control) {
    // flags first, then masks: an unmasked exception with its flag still set would trap at the next x87 instruction
    struct {
      uint16_t control, reserved0, status, reserved1, tag, reserved2;
      uint32_t pointers[4];
    } environment;
    __asm__ volatile("fnstenv %0" : "=m"(environment));
    environment.control = saved.control;
    environment.status =
        static_cast<uint16_t>((environment.status & ~(x87_flags | 0x8080u)) | (saved.status & x87_flags));
    __asm__ volatile("fldenv %0" : : "m"(environment));
  }
}

bool is_default(const FloatingPoint& state) noexcept {
  return (state.mxcsr & mxcsr_modes) == default_mxcsr && state.control == default_control;
}

#elif defined(__aarch64__)

FloatingPoint read_state() noexcept {
  FloatingPoint state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state.control));
  __asm__ volatile("mrs %0, fpsr" : "=r"(state.status));
  return state;
}

void write_state(uint64_t control, uint64_t status) noexcept {
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
  __asm__ volatile("msr fpsr, %0" : : "r"(status));
}

void set_default(const FloatingPoint& now) noexcept {
  if (now.control != 0 || now.status != 0) write_state(0, 0);
}

void restore(const FloatingPoint& saved) noexcept { write_state(saved.control, saved.status); }

bool is_default(const FloatingPoint& state) noexcept { return state.control == 0; }

#else

FloatingPoint read_state() noexcept {
  FloatingPoint state;
  fegetenv(&state.environment);
  return state;
}

void set_default(const FloatingPoint&) noexcept { fesetenv(FE_DFL_ENV); }
void restore(const FloatingPoint& saved) noexcept { fesetenv(&saved.environment); }
bool is_default(const FloatingPoint&) noexcept { return true; }

#endif

// The core does not link an OpenMP runtime: it looks for the one that the process has. Only a runtime in the global
// scope can be shared with the caller, and a runtime that is loaded later is torch's own.
struct OpenMP {
  int (*max_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
  int (*in_parallel)() = nullptr;
  void (*parallel)(void (*)(void*), void*, unsigned, unsigned) = nullptr;

  OpenMP() noexcept {
    leave_room_in_stacks();  // here because this is once, and before whatever may start a thread
    find("omp_get_max_threads", max_threads);
    find("omp_set_num_threads", set_threads);
    find("omp_in_parallel", in_parallel);
    find("GOMP_parallel", parallel);
  }

  template <class Function>
  static void find(const char* name, Function& function) noexcept {
    function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  }
};

const OpenMP& openmp() noexcept {
  static const OpenMP runtime;
  return runtime;
}

thread_local FloatingPoint worker_state;
thread_local bool worker_saved = false;
// initial-exec: read in each call, and the general model would call a function for it
__attribute__((tls_model("initial-exec"))) thread_local int nested_host_states = 0;
// What the outermost HostState of this thread has put aside: the state of the caller, and its team size.
__attribute__((tls_model("initial-exec"))) thread_local FloatingPoint* caller_state = nullptr;
__attribute__((tls_model("initial-exec"))) thread_local int caller_team_size = 0;
// Team size that Python has set on this thread, which it finds again in the next call; 0: that of the caller.
__attribute__((tls_model("initial-exec"))) thread_local int python_team_size = 0;

void save_worker(void*) {
  if (nested_host_states > 0) return;  // the caller itself, already treated
  worker_state = read_state();
  worker_saved = true;
  set_default(worker_state);
}

void restore_worker(void* caller) {
  if (nested_host_states > 0) return;
  // a worker that has joined since: a smaller team of torch's ends threads, and others take their place
  restore(worker_saved ? worker_state : *static_cast<const FloatingPoint*>(caller));
  worker_saved = false;
}

bool in_team(void (*body)(void*), FloatingPoint* caller) noexcept {
  const OpenMP& runtime = openmp();
  if (!runtime.parallel || !runtime.max_threads || !runtime.in_parallel || runtime.in_parallel()) return false;
  const int threads = runtime.max_threads();
  if (threads < 2) return false;
  runtime.parallel(body, caller, static_cast<unsigned>(threads), 0);
  return true;
}

}  // namespace

HostState::HostState() noexcept : saved_(read_state()), team_size_(openmp_team_size()) {
  const bool outermost = nested_host_states++ == 0;  // Python may call back into the library: the first one counts
  // before the caller's own registers change: workers that this very region starts get their state from them
  if (outermost && !is_default(saved_)) workers_changed_ = in_team(save_worker, &saved_);
  set_default(saved_);
  if (!outermost) return;
  caller_state = &saved_;
  caller_team_size = team_size_;
  if (python_team_size > 0 && python_team_size != team_size_) openmp().set_threads(python_team_size);
}

HostState::~HostState() {
  if (nested_host_states == 1 && team_size_ > 0) {
    const int now = openmp_team_size();
    if (now != (python_team_size > 0 ? python_team_size : team_size_)) python_team_size = now;
    if (now != team_size_) openmp().set_threads(team_size_);
  }
  if (workers_changed_) in_team(restore_worker, &saved_);
  if (--nested_host_states == 0) caller_state = nullptr;
  restore(saved_);
}

CallerState::CallerState() noexcept : saved_(read_state()), team_size_(openmp_team_size()) {
  if (!caller_state) return;
  if (team_size_ != caller_team_size) openmp().set_threads(caller_team_size);
  restore(*caller_state);
}

CallerState::~CallerState() {
  if (!caller_state) return;
  *caller_state = read_state();
  restore(saved_);
  if (openmp_team_size() != team_size_) openmp().set_threads(team_size_);
}

bool is_nested_call() noexcept { return nested_host_states > 1; }

int openmp_team_size() noexcept {
  const OpenMP& runtime = openmp();
  return runtime.max_threads && runtime.set_threads ? runtime.max_threads() : 0;
}

const char* floating_point_mode() noexcept {
#if defined(__x86_64__)
  const FloatingPoint now = read_state();
  const bool traps = (now.mxcsr & mxcsr_masks) != mxcsr_masks;
  const bool flush = (now.mxcsr & 0x8040) != 0;
#elif defined(__aarch64__)
  const FloatingPoint now = read_state();
  const bool traps = (now.control & 0x9F00) != 0;
  const bool flush = (now.control & (1u << 24)) != 0;
#else
  const bool traps = false, flush = false;
#endif
  if (traps) return flush ? "traps on, flush-to-zero on" : "traps on";
  return flush ? "flush-to-zero on" : "default";
}

}  // namespace fpt
