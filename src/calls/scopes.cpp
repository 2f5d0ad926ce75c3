// SPDX-License-Identifier: MIT
#include "calls/scopes.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "calls/tensor.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"

namespace fpt {
namespace {

struct Scope {
  int64_t serial;
  const char* end;  // what using a tensor of it fails with afterwards
  std::string name;
  std::vector<int64_t> tensors;
  std::optional<bool> gradients;     // what the mode was before the scope changed it
  std::vector<PyObject*> autocasts;  // entered, owned; a thread that ends without ending the scope leaves them
};

thread_local std::vector<Scope> scopes;

/// "of the scope \"step\", which has ended": kept for ever, since handles may be used at any time.
const char* end_of(std::string_view name) {
  static std::mutex mutex;
  static std::set<std::string>& ends = *new std::set<std::string>;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::string called = name.empty() ? "a scope" : concat("the scope \"", name, '"');
  return ends.insert(concat("of ", called, ", which has ended: scope%keep moves a tensor to the scope outside"))
      .first->c_str();
}

std::string label(const Scope& scope) { return scope.name.empty() ? "a scope" : concat("scope \"", scope.name, '"'); }

std::size_t place_of(int64_t serial) {
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (scopes[i].serial == serial) return i;
  return scopes.size();
}

Scope& open_scope(int64_t serial) {
  const std::size_t place = place_of(serial);
  if (place == scopes.size())
    fail(FPT_ERR_ARGUMENT, "this scope is not open on this thread: call begin first, on the thread that uses it");
  return scopes[place];
}

void require_innermost(int64_t serial, const char* what) {
  if (&open_scope(serial) != &scopes.back())
    fail(FPT_ERR_ARGUMENT, "only the innermost scope can switch ", what, ", and ", label(scopes.back()), " is inside");
}

bool exchange_gradients(bool wanted) {
  static PyObject *is_enabled = nullptr, *set_enabled = nullptr;
  const char* context = "switching gradients";
  if (!set_enabled) {
    const Ref torch = checked(PyImport_ImportModule("torch"), context);
    is_enabled = checked(PyObject_GetAttrString(torch.get(), "is_grad_enabled"), context).release();
    set_enabled = checked(PyObject_GetAttrString(torch.get(), "set_grad_enabled"), context).release();
  }
  const Ref before = checked(PyObject_CallNoArgs(is_enabled), context);
  checked(PyObject_CallOneArg(set_enabled, wanted ? Py_True : Py_False), context);
  return before.get() == Py_True;
}

void end_innermost() {
  const Scope scope = std::move(scopes.back());
  scopes.pop_back();
  if (scope.tensors.empty() && !scope.gradients && scope.autocasts.empty()) return;
  if (!may_use_python()) return;
  const HostState host;       // letting go may run code of a script
  const InterpreterLock gil;  // once for all of them
  for (auto tensor = scope.tensors.rbegin(); tensor != scope.tensors.rend(); ++tensor) free_tensor(*tensor, scope.end);
  if (scope.gradients) exchange_gradients(*scope.gradients);
  for (auto context = scope.autocasts.rbegin(); context != scope.autocasts.rend(); ++context) {
    const Ref entered(*context);
    const Ref left(PyObject_CallMethod(*context, "__exit__", "OOO", Py_None, Py_None, Py_None));
    if (!left) PyErr_Clear();
  }
}

/// End the scopes inside the one at `place`, which their variables have forgotten.
void end_inside(std::size_t place) {
  while (scopes.size() > place + 1) {
    warn(concat(label(scopes.back()), " was never ended, and ends with the one outside it: call end"));
    end_innermost();
  }
}

}  // namespace

void begin_scope(int64_t* scope, std::string_view name) {
  if (const std::size_t place = place_of(*scope); place != scopes.size()) {
    end_inside(place);
    warn(concat(label(scopes.back()), " begins again and was never ended: call end"));
    end_innermost();
  }
  static std::atomic<int64_t> begun{0};
  static thread_local std::string last_name;
  static thread_local const char* last_end = nullptr;
  if (!last_end || last_name != name) {
    last_end = end_of(name);
    last_name = name;
  }
  scopes.push_back({++begun, last_end, std::string(name), {}, {}, {}});
  *scope = scopes.back().serial;
}

void end_scope(int64_t scope) {
  open_scope(scope);
  end_inside(place_of(scope));
  end_innermost();
}

void keep_in_scope(int64_t scope, int64_t tensor) {
  std::vector<int64_t>& inside = open_scope(scope).tensors;
  tensor_at(tensor);
  const auto found = std::find(inside.rbegin(), inside.rend(), tensor);
  if (found == inside.rend()) return;  // it lives longer anyway
  inside.erase(std::next(found).base());
  if (const std::size_t place = place_of(scope); place > 0) scopes[place - 1].tensors.push_back(tensor);
}

void set_gradients(int64_t scope, bool wanted) {
  require_innermost(scope, "gradients");
  ensure_started();
  const InterpreterLock gil;
  const bool before = exchange_gradients(wanted);
  if (!scopes.back().gradients) scopes.back().gradients = before;
}

void enter_autocast(int64_t scope, const std::string& device, const std::string& dtype) {
  require_innermost(scope, "autocast");
  ensure_started();
  const InterpreterLock gil;
  Ref entered =
      checked(PyObject_CallFunction(embed("enter_autocast"), "ss", device.c_str(), dtype.c_str()), "autocast");
  scopes.back().autocasts.push_back(entered.release());
}

bool is_in_scope() noexcept { return !scopes.empty(); }

bool add_to_scope(int64_t tensor) {
  if (scopes.empty()) return false;
  scopes.back().tensors.push_back(tensor);
  return true;
}

}  // namespace fpt
