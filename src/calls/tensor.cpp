// SPDX-License-Identifier: MIT
#include "calls/tensor.hpp"

#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "arrays/scalar.hpp"
#include "calls/scopes.hpp"
#include "python/interpreter.hpp"
#include "torch/framework.hpp"

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

}  // namespace

bool is_same_layout(int32_t layout) {
  if (layout != 0 && layout != 1) fail(FPT_ERR_ARGUMENT, "the layout must be \"reversed\" or \"same\"");
  return layout == 1;
}

TensorPtr Tensor::of_arg(const fpt_arg& arg, bool same_layout) {
  require_described(arg, "the array");
  if (is_tensor_handle(arg.handle)) return tensor_at(arg.handle);
  if (arg.dtype == FPT_TEXT) fail(FPT_ERR_KIND, "a string cannot become a tensor: pass it with torch_in");
  const auto tensor = std::make_shared<Tensor>(Kind::memory, same_layout);
  tensor->arg_ = std::make_unique<fpt_arg>(arg);
  if (Storage storage = claim_copy(arg)) {
    tensor->owner_ = std::move(storage);
    tensor->arg_->access = FPT_IN;
    tensor->arg_->handle = 0;
  }
  tensor->array_ = std::make_unique<Array>(tensor->owner_ ? array_of(*tensor->arg_) : placed_array_of(*tensor->arg_));
  tensor->looked_ = true;
  return tensor;
}

TensorPtr Tensor::of_memory(const Array& seen, std::shared_ptr<void> owner, bool same_layout) {
  const auto tensor = std::make_shared<Tensor>(Kind::memory, same_layout);
  tensor->array_ = std::make_unique<Array>(same_layout ? seen : reversed(seen));
  tensor->arg_ = std::make_unique<fpt_arg>(argument_of(*tensor->array_));
  tensor->owner_ = std::move(owner);
  tensor->looked_ = true;
  return tensor;
}

TensorPtr Tensor::of_object(Ref object, bool same_layout) {
  const auto tensor = std::make_shared<Tensor>(Kind::object, same_layout);
  tensor->object_ = std::move(object);
  return tensor;
}

TensorPtr Tensor::gradient_of(TensorPtr tensor) {
  const auto gradient = std::make_shared<Tensor>(Kind::gradient, tensor->same_layout_);
  gradient->source_ = std::move(tensor);
  return gradient;
}

TensorPtr Tensor::of_failure(const Error& error) {
  const auto tensor = std::make_shared<Tensor>(Kind::failure, false);
  tensor->failure_ = std::make_unique<const Error>(error);
  return tensor;
}

Tensor::~Tensor() {
  if (!object_ && !seen_) return;
  PyObject* references[] = {object_.release(), seen_.release()};
  release_with_lock(
      [](void* objects) {
        auto** owned = static_cast<PyObject**>(objects);
        Py_XDECREF(owned[0]);
        Py_XDECREF(owned[1]);
      },
      references);
}

bool Tensor::is_value() const noexcept { return kind_ == Kind::memory && fpt::is_value(*arg_); }

void Tensor::refresh_gradient() {
  const Ref gradient = checked(PyObject_GetAttrString(source_->torch_object(), "grad"), "a gradient");
  if (gradient.get() == Py_None)
    fail(FPT_ERR_ARGUMENT, "there is no gradient yet: call backward first, for a tensor with requires_grad");
  if (gradient.get() != object_.get()) object_ = gradient;
}

void Tensor::look() {
  const InterpreterLock gil;
  if (kind_ == Kind::gradient) refresh_gradient();
  View view;
  if (!view_plain_tensor(object_.get(), view)) {
    // with the conjugate or negative bit resolved, which no view shows
    const Ref unpacked = checked(PyObject_CallOneArg(embed("unpack"), object_.get()), "looking into a tensor");
    PyObject *names = nullptr, *values = nullptr;
    if (!PyArg_ParseTuple(unpacked.get(), "OO!", &names, &PyTuple_Type, &values))
      throw_python_error("looking into a tensor");
    view = view_of(PyTuple_GET_ITEM(values, 0));
  }
  array_ = std::make_unique<Array>(same_layout_ ? view.array : reversed(view.array));
  seen_ = std::move(view.keep);
  looked_.store(true, std::memory_order_release);
}

const Array& Tensor::array() {
  if (kind_ == Kind::gradient || !looked_.load(std::memory_order_acquire)) look();
  return *array_;
}

fpt_arg Tensor::described_as(const fpt_arg& reference) {
  fpt_arg described = kind_ == Kind::memory ? *arg_ : argument_of(array());
  std::memcpy(described.name, reference.name, sizeof described.name);
  return described;
}

PyObject* Tensor::object() {
  if (kind_ == Kind::gradient) refresh_gradient();
  return object_.get();
}

PyObject* Tensor::torch_object() {
  if (PyObject* known = object()) return known;
  if (is_value()) {  // a tensor of its own memory, since the value has none
    const std::shared_ptr<void> memory = allocate(sizeof arg_->u.value);
    std::memcpy(memory.get(), arg_->u.value, sizeof arg_->u.value);
    Array scalar = *array_;
    scalar.data = memory.get();
    object_ = make_array(Framework::torch, scalar, memory, false).object;
  } else {
    object_ = make_array(Framework::torch, same_layout_ ? *array_ : reversed(*array_), owner_, false).object;
  }
  return object_.get();
}

TensorPtr tensor_at(int64_t handle) {
  const TensorPtr& tensor = tensors().at(handle).tensor;
  if (const Error* failure = tensor->failure()) throw Error(*failure);
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
  tensor_at(handle);
  fpt_arg arg = argument_of({});
  arg.handle = handle;
  return arg;
}

fpt_arg described_output(const fpt_arg& output) {
  if (!is_tensor_handle(output.handle)) return output;
  const TensorPtr tensor = tensor_at(output.handle);
  if (!tensor->is_of_caller())
    fail(FPT_ERR_ARGUMENT, "a tensor that a script returned, or that owns a copy, cannot be an output: ",
         "pass the array itself with torch_out");
  return tensor->described_as(output);
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

}  // namespace fpt
