// SPDX-License-Identifier: MIT
#include "values/tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "values/assignment.hpp"
#include "values/engine.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

/// What a handle names. Variables share what it refers to.
struct Named {
  TensorPtr tensor;
  const int64_t* home = nullptr;  // variable whose end frees it
  bool is_bound = false;          // made of an array: assignment writes into that
  bool is_counted = false;        // result of an operation outside of every scope

  explicit Named(TensorPtr tensor) noexcept : tensor(std::move(tensor)) {}
  ~Named() {
    if (is_counted) --counted;
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  static std::atomic<int64_t> counted;
};

std::atomic<int64_t> Named::counted{0};
constexpr int64_t many_results = 100000;

using Tensors = HandleTable<Named, HandleKind::tensor>;

Tensors& tensors() {
  static Tensors& table = *new Tensors("a tensor with contents", "from_array, or pass it as output of a call,");
  return table;
}

/// Addresses of variables that own a tensor, or owned one that ended before them. A compiler may name any address when
/// it finalizes (gfortran 11 and 12 miss the elements of an array component), so none is read that is not here.
class Homes {
 public:
  void add(const int64_t* home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    homes_.insert(home);
    count_ = homes_.size();
  }
  bool remove(const int64_t* home) noexcept {
    if (count_ == 0) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool was_there = homes_.erase(home) > 0;
    count_ = homes_.size();
    return was_there;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<const int64_t*> homes_;
  std::atomic<std::size_t> count_{0};
};

Homes& homes() {
  static Homes& variables = *new Homes;
  return variables;
}

/// Whether two elements may lie at one place: each axis steps over all that the axes with smaller steps reach, else.
bool may_overlap_itself(const Array& array) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // steps and extents
  for (int32_t i = 0; i < array.rank; ++i)
    if (array.extents[i] > 1) axes.emplace_back(std::abs(array.strides[i]), array.extents[i]);
  std::sort(axes.begin(), axes.end());
  auto reach = static_cast<int64_t>(dtype_size(array.dtype));
  for (const auto& [step, extent] : axes) {
    if (step < reach) return true;
    reach += step * (extent - 1);
  }
  return false;
}

}  // namespace

bool is_same_layout(int32_t layout) {
  if (layout != 0 && layout != 1) fail(FPT_ERR_ARGUMENT, "the layout must be \"reversed\" or \"same\"");
  return layout == 1;
}

fpt_arg Tensor::described_as(const fpt_arg& reference) {
  fpt_arg described = description();
  std::memcpy(described.name, reference.name, sizeof described.name);
  return described;
}

TensorPtr holding_memory(const TensorPtr& tensor) {
  if (tensor->is_plain_memory() || !engine_of(*tensor).flags_of(*tensor).is_of_torch) return tensor;
  return call_for_tensor("Tensor.detach", {{tensor}}, tensor->same_layout());
}

TensorPtr named_at(int64_t handle) {
  const TensorPtr& tensor = tensors().at(handle).tensor;
  if (const Error* failure = tensor->failure()) throw Error(*failure);
  return tensor;
}

TensorPtr tensor_at(int64_t handle) {
  const TensorPtr& tensor = tensors().at(handle).tensor;
  if (TensorPtr now = tensor->now()) return now;
  return tensor;
}

TensorPtr find_tensor(int64_t handle) noexcept {
  const Named* named = tensors().find(handle);
  return named ? named->tensor : nullptr;
}

bool is_tensor_set(int64_t handle) noexcept {
  const Named* named = tensors().find(handle);
  return named && !named->tensor->failure();
}

const void* tensor_address(int64_t handle) noexcept { return tensors().find(handle); }

int64_t insert_unscoped(TensorPtr tensor) { return tensors().insert(std::make_unique<Named>(std::move(tensor))); }

void store_tensor(int64_t* handle, TensorPtr tensor) {
  const bool is_bound = tensor->is_of_caller();
  Named* named = tensors().find(*handle);
  if (named) {
    std::swap(named->tensor, tensor);  // what it held ends here
  } else {
    *handle = insert_unscoped(std::move(tensor));
    add_to_scope(*handle);
    named = tensors().find(*handle);
  }
  named->is_bound = is_bound;
}

int64_t insert_result(TensorPtr tensor) {
  const int64_t handle = insert_unscoped(std::move(tensor));
  if (add_to_scope(handle)) return handle;
  tensors().find(handle)->is_counted = true;
  static std::atomic<bool> warned{false};
  if (++Named::counted > many_results && !warned.exchange(true))
    warn(concat("more than ", many_results,
                " results of operations on tensors are alive, made outside of every scope: ",
                "put them between scope%begin() and scope%end()"));
  return handle;
}

void assign_tensor(int64_t* left, int64_t right) {
  const TensorPtr value = find_tensor(right), target = find_tensor(*left);
  if (value && value == target) return;
  if (!target || !is_bound(*left)) {
    *left = value ? insert_result(value) : right;  // no tensor, or one that is gone: using it says so
    return;
  }
  write_through(target, tensor_at(right));
}

bool is_bound(int64_t handle) noexcept {
  const Named* named = tensors().find(handle);
  return named && named->is_bound;
}

void free_tensor(int64_t handle, HandleEnd end) noexcept { tensors().remove(handle, std::move(end)); }

void own_tensor(const int64_t* home, int64_t before) {
  disown_tensor(home, before);
  Named* named = is_in_scope() ? nullptr : tensors().find(*home);
  if (!named) return;
  homes().add(home);
  named->home = home;
}

void disown_tensor(const int64_t* home, int64_t before) {
  Named* named = before == *home ? nullptr : tensors().find(before);
  if (named && named->home == home && !add_to_scope(before)) free_tensor(before);
}

void end_owner(int64_t* home) {
  if (homes().remove(home)) disown_tensor(home, std::exchange(*home, 0));
}

fpt_arg tensor_argument(int64_t handle) {
  named_at(handle);
  fpt_arg arg = argument_of({});
  arg.handle = handle;
  return arg;
}

TensorOutput::TensorOutput(const fpt_arg& output) {
  TensorPtr tensor = tensor_at(output.handle);
  if (is_bound(output.handle) && !tensor->is_of_caller())
    fail(FPT_ERR_ARGUMENT, "a tensor of an array cannot be an output after torch gave it other memory: pass the array ",
         "itself with torch_out");
  if (!tensor->is_plain_memory()) {
    require_writable(tensor);
    of_torch_ = tensor;
    memory_ = holding_memory(tensor);
  }
  described_ = (memory_ ? memory_ : tensor)->described_as(output);
  if (may_overlap_itself(array_of(described_)))
    fail(FPT_ERR_ARGUMENT, "a tensor of which several elements may be the same memory cannot be an output, such as an ",
         "expanded one");
}

void TensorOutput::written() const noexcept {
  if (of_torch_) note_written(of_torch_);
}

void require_memory(const Array& array, int32_t dtype, int32_t rank, const std::string& label) {
  if (!array.device.is_host())
    fail(FPT_ERR_DEVICE, label, " is in device memory: return it with .cpu() from the script, or load with device=");
  if (array.rank != rank)
    fail(FPT_ERR_RANK, label, " has ", array.rank, " axes, shape ", shape_text(array),
         " in Fortran order, but the array has rank ", rank);
  if (array.dtype != dtype)
    fail(FPT_ERR_DTYPE, label, " is ", dtype_name(array.dtype), ", but the array is ", dtype_fortran_name(dtype),
         ": nothing is copied here, so the types must agree; copy_to and output arrays convert");
}

void require_pointer(const Array& array, int32_t dtype, int32_t rank, const std::string& label) {
  require_memory(array, dtype, rank, label);
  if (array.is_protected)
    fail(FPT_ERR_ARGUMENT, label, " is memory that Python protects from writing, such as a constant, a file or a ",
         "broadcast, and a pointer could write to it: use copy_to, or return a copy from the script (x.copy())");
}

}  // namespace fpt
