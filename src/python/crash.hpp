// SPDX-License-Identifier: MIT
/// A Python traceback when native code crashes: Python's faulthandler, without taking the handlers of the program.
#pragma once

namespace fpt {

/// Enable faulthandler on standard error for those of SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGABRT that nobody handles;
/// libgfortran's handlers, which print a backtrace and end the program, count as nobody and run afterwards. Handlers
/// and alternate signal stack of the program are as before. With the interpreter lock; never fails.
///
/// Does nothing with FTN_PYTORCH_FAULTHANDLER=0, and where faulthandler is enabled already.
void show_traceback_on_crash() noexcept;

}  // namespace fpt
