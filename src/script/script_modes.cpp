// SPDX-License-Identifier: MIT
#include "script/script_modes.hpp"

#include <memory>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "python/forks.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

struct Known {
  std::string name;
  bool has_modes = false;
};

std::unordered_map<uint64_t, Known>& known_scripts() {
  static auto& known = *new std::unordered_map<uint64_t, Known>;
  return known;
}

/// What torch had when a script began.
struct Before {
  TorchModes modes;
  bool is_plain = true;  ///< else Python remembers all details
};
thread_local Before before_last;
static_assert(std::is_trivially_destructible_v<Before>);

/// Calls in progress of scripts with modes of their own, and whether there were two of them at once. Two modes are of
/// the process, see TorchModes: while such a call runs, they tell nothing of the program and of other scripts.
std::atomic<int> calls_with_modes{0};
bool has_overlapped = false;
TorchModes of_program;

/// What is done with the modes of the process, as system/torch_modes.py has it.
enum class OfProcess { left_alone, put_back, put_back_and_kept };

bool read(TorchModes& modes, bool is_nested) noexcept {
  if (!torch_access::read_modes(modes)) return false;
  if (is_nested || calls_with_modes.load(std::memory_order_relaxed) == 0) return true;
  modes.default_type = of_program.default_type;
  modes.deterministic = of_program.deterministic;
  return true;
}

bool differs_from(const Before& before, bool is_nested) noexcept {
  TorchModes now;
  return !read(now, is_nested) || !(now == before.modes);
}

/// @param details  set to what Python remembers for a nested call
Before modes_before(bool is_nested, Ref& details) {
  Before before;
  before.modes.gradients = gradients_are_chosen();  // in a libtorch that Python has not imported yet
  if (!torch_is_imported()) return before;
  torch_access::find_modes();
  before.is_plain = read(before.modes, is_nested) && before.modes.is_plain();
  if (!before.is_plain)
    details = checked(PyObject_CallFunction(embed("remember_modes"), "i", int(is_nested)), "the modes of torch");
  return before;
}

/// Put the modes of the program back; what was found is that of the script.
void put_back(uint64_t script, const Before& before, PyObject* details, OfProcess of_process) {
  if (!torch_is_imported()) return;
  torch_access::find_modes();
  const auto known = known_scripts().find(script);
  const bool is_known = known != known_scripts().end();
  const KeptException of_call;
  PyObject* gradients = before.modes.gradients ? Py_True : Py_False;
  PyObject* remembered = details ? details : Py_None;
  const Ref has_modes(PyObject_CallFunction(embed("put_modes_back"), "KsOi",
                                            static_cast<unsigned long long>(is_known ? script : 0),
                                            is_known ? known->second.name.c_str() : "",
                                            before.is_plain ? gradients : remembered, static_cast<int>(of_process)));
  if (!has_modes) return PyErr_Clear();
  if (is_known) scripts_with_modes += int(has_modes.get() == Py_True) - int(known->second.has_modes);
  if (is_known) known->second.has_modes = has_modes.get() == Py_True;
}

/// After the last script of this thread, whose modes nobody has looked at.
void put_back_last() noexcept {
  if (is_idle_child) return;  // the lock may never come; its first call into Python looks again
  const uint64_t script = std::exchange(last_script, 0);
  if (!differs_from(before_last, false) || !may_use_python()) return;
  try {
    const InterpreterLock gil;
    put_back(script, before_last, nullptr, calls_with_modes > 0 ? OfProcess::left_alone : OfProcess::put_back_and_kept);
  } catch (const std::exception&) {  // Python has ended meanwhile, or another thread keeps its lock
  }
}

[[maybe_unused]] const bool provided = (provide_modes(put_back_last), true);

}  // namespace

int scripts_with_modes = 0;

uint64_t number_script(const std::string& name) {
  static uint64_t number = 0;
  known_scripts()[++number].name = name;
  return number;
}

void forget_script(uint64_t number) noexcept {
  const auto known = known_scripts().find(number);
  if (known == known_scripts().end()) return;
  if (known->second.has_modes) {
    --scripts_with_modes;
    const Ref done(PyObject_CallFunction(embed("forget_modes"), "K", static_cast<unsigned long long>(number)));
    if (!done) PyErr_Clear();
  }
  known_scripts().erase(known);
}

struct ModesOfScript::InUse {
  const bool is_nested, has_modes;
  const uint64_t outer;  // the script whose call this one is in
  Ref details;
  Before before;
};

void ModesOfScript::begin(bool at_once) {
  if (script_ == 0) return;
  const bool is_nested = is_nested_call(), has_modes = scripts_with_modes > 0 && known_scripts()[script_].has_modes;
  if (script_ == last_script && (is_nested || !has_modes)) return;
  Ref details;
  Before before = before_last;
  const bool is_known = !is_nested && last_script != 0 && !differs_from(before_last, false);
  if (!is_known) {
    leave_last_script();
    before = modes_before(is_nested, details);
    if (!is_nested) before_last = before;
  }
  if (is_nested || has_modes || at_once || interpreter_info().adopted)
    in_use_ = new InUse{is_nested, has_modes, last_script, std::move(details), before};
  last_script = script_;
  if (!has_modes) return;
  has_overlapped = calls_with_modes++ > 0;
  if (!has_overlapped) of_program = before.modes;
  const Ref done(PyObject_CallFunction(embed("enter_modes"), "K", static_cast<unsigned long long>(script_)));
  if (!done) PyErr_Clear();
}

void ModesOfScript::end() noexcept {
  const std::unique_ptr<InUse> in_use(std::exchange(in_use_, nullptr));
  if (in_use->has_modes) --calls_with_modes;
  last_script = in_use->outer;
  try {
    if (!in_use->has_modes && !differs_from(in_use->before, in_use->is_nested)) return;
    OfProcess of_process = OfProcess::put_back_and_kept;
    if (in_use->is_nested || (in_use->has_modes && has_overlapped)) of_process = OfProcess::put_back;
    if (!in_use->is_nested && calls_with_modes > 0) of_process = OfProcess::left_alone;
    put_back(script_, in_use->before, in_use->details.get(), of_process);
  } catch (const std::exception&) {  // without memory they stay
  }
}

}  // namespace fpt
