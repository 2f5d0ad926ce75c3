// SPDX-License-Identifier: MIT
/// What `ftn_pytorch doctor PROGRAM` is told of a program: the library is loaded into it, writes who provides what, and
/// ends the process before the program itself begins. Knows nothing of Python.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/program_libraries.hpp"
#include "observe/log.hpp"

namespace fpt {
namespace {

std::string report() {
  std::string text = concat("malloc\t", file_of_malloc(), "\n");
  if (!obstacle_to_own_names().empty()) append(text, concat("obstacle\t", obstacle_to_own_names(), "\n"));
  for (const ProgramFunction& each : functions_of_torch())
    append(text, concat("torch\t", each.name, "\t", each.file, "\n"));
  for (const ProgramFunction& each : functions_of_modules())
    append(text, concat("modules\t", each.name, "\t", each.file, "\n"));
  if (!own_names_first() && !unusable_blas().empty()) append(text, concat("unusable\t", unusable_blas(), "\n"));
  return text;
}

/// A file that is there already, which the doctor has made: a variable left behind by mistake stops no program.
[[gnu::constructor]] void tell_doctor() {
  const char* const file = std::getenv("FTN_PYTORCH_DOCTOR_REPORT");
  if (!file) return;
  const int opened = open(file, O_WRONLY | O_CLOEXEC);
  if (opened < 0) return;
  try {
    _exit(write_whole(opened, report()) ? 0 : 1);
  } catch (const Error& error) {
    _exit(write_whole(opened, concat("failure\t", error.text(), "\n")) ? 0 : 1);
  }
}

}  // namespace
}  // namespace fpt
