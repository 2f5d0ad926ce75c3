// SPDX-License-Identifier: MIT
#include "values/scopes.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/per_thread.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"
#include "values/tensor.hpp"

namespace fpt {
namespace {

struct Scope {
  int64_t serial;
  const int64_t* home;  // variable that began it
  HandleEnd end;        // what using a tensor of it fails with afterwards
  std::string name;
  std::vector<int64_t> tensors;
  std::optional<bool> gradients;     // what the mode was before the scope changed it
  std::vector<PyObject*> autocasts;  // entered, owned; a thread that ends without ending the scope leaves them
};

/// The scopes of a thread, the innermost one last.
struct Scopes {
  std::vector<Scope> open;
  // of the scope that began last: a loop begins one and the same again and again
  std::string name;
  HandleEnd end;
};

std::vector<Scope>& open_scopes() { return PerThread<Scopes>::get().open; }

/// "of the scope \"step\", which has ended"
HandleEnd end_of(std::string_view name) {
  Scopes& scopes = PerThread<Scopes>::get();
  if (!scopes.end || scopes.name != name) {
    scopes.end = std::make_shared<const std::string>(
        concat("of ", name.empty() ? "a scope" : concat("the scope \"", name, '"'),
               ", which has ended: scope%keep moves a tensor to the scope outside"));
    scopes.name = name;
  }
  return scopes.end;
}

std::string label(const Scope& scope) { return scope.name.empty() ? "a scope" : concat("scope \"", scope.name, '"'); }

/// Number of the scopes outside of the one that `is_wanted` is true for; the number of scopes if there is none.
template <class Test>
std::size_t place_where(const Test& is_wanted) noexcept {
  const Scopes* scopes = PerThread<Scopes>::find();
  if (!scopes) return 0;
  for (std::size_t i = scopes->open.size(); i-- > 0;)
    if (is_wanted(scopes->open[i])) return i;
  return scopes->open.size();
}

std::size_t place_of(int64_t serial) noexcept {
  return place_where([serial](const Scope& scope) { return scope.serial == serial; });
}

Scope& open_scope(int64_t serial) {
  std::vector<Scope>& scopes = open_scopes();
  const std::size_t place = place_of(serial);
  if (serial != 0 && !is_handle_of(HandleKind::scope, serial))
    fail(FPT_ERR_ARGUMENT, "this is a number, but not that of a scope");
  if (place == scopes.size())
    fail(FPT_ERR_ARGUMENT, "this scope is not open on this thread: call begin first, on the thread that uses it");
  return scopes[place];
}

void require_innermost(int64_t serial, const char* what) {
  const Scope &wanted = open_scope(serial), &last = open_scopes().back();
  if (&wanted != &last)
    fail(FPT_ERR_ARGUMENT, "only the innermost scope can switch ", what, ", and ", label(last), " is inside");
}

struct GradientMode {
  PyObject *is_enabled = nullptr, *set_enabled = nullptr;
};

constexpr const char* switching = "switching gradients";

/// The functions of torch, with the interpreter lock.
const GradientMode& gradient_mode() {
  static GradientMode mode;
  if (!mode.set_enabled) {
    const Ref torch = checked(PyImport_ImportModule("torch"), switching);
    mode.is_enabled = checked(PyObject_GetAttrString(torch.get(), "is_grad_enabled"), switching).release();
    mode.set_enabled = checked(PyObject_GetAttrString(torch.get(), "set_grad_enabled"), switching).release();
  }
  return mode;
}

bool gradients_are_on() { return checked(PyObject_CallNoArgs(gradient_mode().is_enabled), switching).get() == Py_True; }

bool exchange_gradients(bool wanted) {
  const bool before = gradients_are_on();
  checked(PyObject_CallOneArg(gradient_mode().set_enabled, wanted ? Py_True : Py_False), switching);
  return before;
}

void free_tensors(const Scope& scope) noexcept {
  for (auto tensor = scope.tensors.rbegin(); tensor != scope.tensors.rend(); ++tensor) free_tensor(*tensor, scope.end);
}

void end_innermost() {
  const Scope scope = std::move(open_scopes().back());
  open_scopes().pop_back();
  if (scope.tensors.empty() && !scope.gradients && scope.autocasts.empty()) return;
  if (!may_use_python()) return free_tensors(scope);  // of a program without Python, or one that has ended it
  const HostState host;                               // letting go may run code of a script
  const InterpreterLock gil;                          // once for all of them
  free_tensors(scope);
  for (auto context = scope.autocasts.rbegin(); context != scope.autocasts.rend(); ++context) {
    const Ref entered(*context);
    const Ref left(PyObject_CallMethod(*context, "__exit__", "OOO", Py_None, Py_None, Py_None));
    if (!left) PyErr_Clear();
  }
  if (scope.gradients) exchange_gradients(*scope.gradients);  // last, because it may fail
}

/// End the scopes inside the one at `place`, which their variables have forgotten.
void end_inside(std::size_t place) {
  const std::vector<Scope>& scopes = open_scopes();
  while (scopes.size() > place + 1) {
    warn(concat(label(scopes.back()), " was never ended, and ends with the one outside it: call end"));
    end_innermost();
  }
}

}  // namespace

void begin_scope(int64_t* scope, std::string_view name) {
  std::vector<Scope>& scopes = open_scopes();
  if (const std::size_t place = place_of(*scope); place != scopes.size()) {
    end_inside(place);
    warn(concat(label(scopes.back()), " begins again and was never ended: call end"));
    end_innermost();
  }
  static std::atomic<int64_t> begun{0};
  scopes.push_back(
      {static_cast<int64_t>(HandleKind::scope) << 60 | ++begun, scope, end_of(name), std::string(name), {}, {}, {}});
  *scope = scopes.back().serial;
}

void end_scope(int64_t scope) {
  open_scope(scope);
  end_inside(place_of(scope));
  end_innermost();
}

void leave_scope(const int64_t* home) {
  const std::size_t place =
      place_where([home](const Scope& scope) { return scope.home == home && scope.serial == *home; });
  while (is_in_scope() && open_scopes().size() > place) end_innermost();
}

void keep_in_scope(int64_t scope, int64_t tensor) {
  open_scope(scope);
  tensor_at(tensor);
  std::vector<Scope>& scopes = open_scopes();
  const std::size_t place = place_of(scope);
  for (std::size_t i = scopes.size(); i-- > place;) {
    std::vector<int64_t>& inside = scopes[i].tensors;
    const auto found = std::find(inside.rbegin(), inside.rend(), tensor);
    if (found == inside.rend()) continue;
    if (place > 0) scopes[place - 1].tensors.push_back(tensor);
    inside.erase(std::next(found).base());
    return;
  }
  // that of a scope further outside, or of none, lives longer anyway
}

void set_gradients(int64_t scope, bool wanted) {
  require_innermost(scope, "gradients");
  ensure_started();
  const InterpreterLock gil;
  const bool before = exchange_gradients(wanted);
  std::optional<bool>& outside = open_scopes().back().gradients;
  if (!outside) outside = before;
}

void enter_autocast(int64_t scope, const std::string& device, const std::string& dtype) {
  require_innermost(scope, "autocast");
  ensure_started();
  const InterpreterLock gil;
  std::vector<PyObject*>& autocasts = open_scopes().back().autocasts;
  autocasts.reserve(autocasts.size() + 1);
  Ref entered =
      checked(PyObject_CallFunction(embed("enter_autocast"), "ss", device.c_str(), dtype.c_str()), "autocast");
  open_scopes().back().autocasts.push_back(entered.release());
}

bool is_in_scope() noexcept {
  const Scopes* scopes = PerThread<Scopes>::find();
  return scopes && !scopes->open.empty();
}

bool add_to_scope(int64_t tensor) {
  if (!is_in_scope()) return false;
  open_scopes().back().tensors.push_back(tensor);
  return true;
}

bool records_gradients(Tensor& tensor) {
  if (tensor.is_plain_memory() || !may_use_python()) return false;
  const InterpreterLock gil;
  const Ref object = tensor.object();
  if (!is_tensor(object.get())) return false;
  const Ref wanted = checked(PyObject_GetAttrString(object.get(), "requires_grad"), "a tensor");
  return wanted.get() == Py_True && gradients_are_on();
}

}  // namespace fpt
