// SPDX-License-Identifier: MIT
#include "python/crash.hpp"

#include <dlfcn.h>

#include <csignal>
#include <string_view>

#include "base/switches.hpp"
#include "python/pyref.hpp"

namespace fpt {
namespace {

constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int count = sizeof fatal_signals / sizeof *fatal_signals;

/// True for a handler that does no more than end the program: gfortran's main program installs one that prints where.
bool is_free(const struct sigaction& action) noexcept {
  if (action.sa_flags & SA_SIGINFO) return false;
  if (action.sa_handler == SIG_DFL) return true;
  if (action.sa_handler == SIG_IGN) return false;
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(action.sa_handler), &info) || !info.dli_fname) return false;
  const std::string_view file = info.dli_fname;
  return file.substr(file.rfind('/') + 1).rfind("libgfortran.so", 0) == 0;
}

}  // namespace

void show_traceback_on_crash() noexcept {
  if (is_switched_off("FTN_PYTORCH_FAULTHANDLER")) return;
  struct sigaction before[count];
  stack_t stack;
  for (int i = 0; i < count; ++i) sigaction(fatal_signals[i], nullptr, &before[i]);
  sigaltstack(nullptr, &stack);

  const Ref module(PyImport_ImportModule("faulthandler"));
  const Ref enabled(module ? PyObject_CallMethod(module.get(), "is_enabled", nullptr) : nullptr);
  if (enabled && enabled.get() == Py_False) {
    // when its handler has written the traceback, it puts back the one that it found and raises the signal again
    const Ref done(PyObject_CallMethod(module.get(), "enable", "i", 2));
    for (int i = 0; i < count; ++i)
      if (!is_free(before[i])) sigaction(fatal_signals[i], &before[i], nullptr);
    if (!(stack.ss_flags & SS_DISABLE)) sigaltstack(&stack, nullptr);
  }
  PyErr_Clear();
}

}  // namespace fpt
