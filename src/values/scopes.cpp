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
#include "base/last_script.hpp"
#include "base/per_thread.hpp"
#include "values/engine.hpp"
#include "values/tensor.hpp"

namespace fpt {
namespace {

struct Scope {
  int64_t serial;
  const int64_t* home;  // variable that began it
  HandleEnd end;        // what using a tensor of it fails with afterwards
  std::string name;
  std::vector<int64_t> tensors;
  std::optional<bool> gradients;  // what the mode was before the scope changed it
  bool chosen = true;             // what it changed the mode to, last
  std::vector<void*> autocasts;   // entered, owned; a thread that ends without ending the scope leaves them
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

/// Forget the tensors that have been freed, before more memory is taken for those that live: a scope that lasts as long
/// as the program may have seen any number.
void make_room(std::vector<int64_t>& tensors) {
  const auto is_gone = [](int64_t tensor) { return tensor_address(tensor) == nullptr; };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), is_gone), tensors.end());
  tensors.reserve(std::max<std::size_t>(16, 2 * tensors.size()));
}

void free_tensors(const Scope& scope) noexcept {
  for (auto tensor = scope.tensors.rbegin(); tensor != scope.tensors.rend(); ++tensor) free_tensor(*tensor, scope.end);
}

void end_innermost() {
  const Scope scope = std::move(open_scopes().back());
  open_scopes().pop_back();
  if (scope.tensors.empty() && !scope.gradients && scope.autocasts.empty()) return;
  Engine* known = opened_engine();
  if (!known) return free_tensors(scope);
  const HostState host;  // letting go may run code of a script
  if (scope.gradients) leave_last_script();
  const bool is_usable = known->leave_scope([&scope] { free_tensors(scope); }, scope.autocasts);
  if (scope.gradients && is_usable) known->compute_gradients(*scope.gradients);  // last, because it may fail
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
  scopes.push_back({static_cast<int64_t>(HandleKind::scope) << 60 | ++begun,
                    scope,
                    end_of(name),
                    std::string(name),
                    {},
                    {},
                    true,
                    {}});
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
  named_at(tensor);
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
  Engine& ours = engine();
  const bool before = ours.computes_gradients();
  if (wanted != before) ours.compute_gradients(wanted);
  std::optional<bool>& outside = open_scopes().back().gradients;
  if (!outside) outside = before;
  open_scopes().back().chosen = wanted;
}

bool gradients_are_chosen() noexcept {
  const Scopes* scopes = PerThread<Scopes>::find();
  if (!scopes) return true;
  const auto chooses = [](const Scope& scope) { return scope.gradients.has_value(); };
  const auto innermost = std::find_if(scopes->open.rbegin(), scopes->open.rend(), chooses);
  return innermost == scopes->open.rend() || innermost->chosen;
}

void enter_autocast(int64_t scope, const std::string& device, const std::string& dtype) {
  require_innermost(scope, "autocast");
  std::vector<void*>& autocasts = open_scopes().back().autocasts;
  autocasts.reserve(autocasts.size() + 1);
  void* entered = engine().enter_autocast(device, dtype);
  open_scopes().back().autocasts.push_back(entered);
}

bool is_in_scope() noexcept {
  const Scopes* scopes = PerThread<Scopes>::find();
  return scopes && !scopes->open.empty();
}

bool add_to_scope(int64_t tensor) {
  if (!is_in_scope()) return false;
  std::vector<int64_t>& tensors = open_scopes().back().tensors;
  if (tensors.size() == tensors.capacity()) make_room(tensors);
  tensors.push_back(tensor);
  return true;
}

bool records_gradients(Tensor& tensor) {
  if (tensor.is_plain_memory()) return false;
  // Parameters of a saved model may be there before any operation has opened an engine.
  if (!opened_engine() && !tensor.in_torch().is_of_libtorch()) return false;
  return engine_of(tensor).flags_of(tensor).requires_grad && engine().computes_gradients();
}

}  // namespace fpt
