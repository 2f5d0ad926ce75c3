// SPDX-License-Identifier: MIT
/// Modes of torch that a script leaves behind: its next call finds them again, and nobody else sees them.
///
/// Most scripts leave none, and the look at the end of their call is put off, see base/last_script.hpp. One that has
/// left some gets them at the start of each call, and the program has its own back at the end. With the interpreter
/// lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/last_script.hpp"

namespace fpt {

/// A number for a script that is being loaded; the same for as long as it is known.
uint64_t number_script(const std::string& name);
void forget_script(uint64_t number) noexcept;

/// Scripts that have modes of their own.
extern int scripts_with_modes;

/// Around all that runs code of a script.
class ModesOfScript {
 public:
  /// @param script   its number; 0: an object of torch, whose modes are those of the program
  /// @param at_once  the modes of the program are back at the end, not when somebody else uses torch
  explicit ModesOfScript(uint64_t script, bool at_once = false) : script_(script) {
    if (script != last_script || scripts_with_modes > 0) begin(at_once);
  }
  ~ModesOfScript() {
    if (in_use_) end();
  }
  ModesOfScript(const ModesOfScript&) = delete;
  ModesOfScript& operator=(const ModesOfScript&) = delete;

 private:
  struct InUse;  // until the modes of the program are back
  void begin(bool at_once);
  void end() noexcept;

  const uint64_t script_;
  InUse* in_use_ = nullptr;
};

}  // namespace fpt
