// SPDX-License-Identifier: MIT
#include "calls/tensor.hpp"

#include <cstring>

#include "base/error.hpp"
#include "base/fpenv.hpp"
#include "base/handle.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

using Tensors = HandleTable<Tensor, HandleKind::tensor>;
using Wraps = HandleTable<ArgumentList, HandleKind::wrap>;

Tensors& tensors() {
  static Tensors& table = *new Tensors("a tensor with contents", "from_array, or pass it as output of a call,");
  return table;
}

Wraps& wraps() {
  static Wraps& table = *new Wraps("a list of tensors", "create");
  return table;
}

}  // namespace

Tensor Tensor::of_object(PyObject* value, bool same_layout, bool to_host) {
  Tensor tensor;
  tensor.object = Ref::borrow(value);
  tensor.same_layout = same_layout;
  tensor.set = true;
  View view = view_of(value);
  if (to_host && !view.array.on_host) {
    tensor.object = checked(PyObject_CallFunctionObjArgs(embed("to_host"), value, nullptr), "copying a result to the host");
    view = view_of(tensor.object.get());
  }
  tensor.array = same_layout ? view.array : reversed(view.array);
  tensor.keep = std::move(view.keep);
  return tensor;
}

Tensor Tensor::of_owned(const Array& array, std::shared_ptr<void> owner, bool same_layout) {
  Tensor tensor;
  tensor.arg.data = array.data;
  tensor.arg.dtype = static_cast<int16_t>(array.dtype);
  tensor.arg.rank = static_cast<int8_t>(array.rank);
  tensor.arg.access = FPT_OUT;
  get_axes(array, tensor.arg.u.array.extents, tensor.arg.u.array.strides);
  tensor.array = array;
  tensor.owner = std::move(owner);
  tensor.same_layout = same_layout;
  tensor.set = true;
  return tensor;
}

Tensor Tensor::of_arg(const fpt_arg& arg) {
  require_described(arg, "the array");
  if (is_tensor_handle(arg.handle)) return tensor_at(arg.handle).duplicate();
  if (arg.dtype == FPT_TEXT) fail(FPT_ERR_KIND, "a text cannot become a tensor: pass it with torch_in");
  Tensor tensor;
  tensor.arg = arg;
  tensor.storage = claim_copy(arg);
  if (tensor.storage) {
    tensor.arg.access = FPT_IN;
    tensor.arg.handle = 0;
  }
  tensor.set = true;
  tensor.array = array_of(tensor.arg);
  return tensor;
}

Tensor Tensor::duplicate() const {
  Tensor other;
  if (storage) fail(FPT_ERR_ARGUMENT, "a tensor that owns a torch_copy cannot be added to a list: add torch_copy itself");
  other.arg = arg;
  other.array = array;
  other.same_layout = same_layout;
  other.owner = owner;
  other.set = set;
  if (object) {
    const InterpreterLock gil;
    other.object = object;
    other.keep = keep;
  }
  return other;
}

void release(std::unique_ptr<Tensor> tensor) noexcept {
  if (!tensor) return;
  if (!tensor->object) return;
  const HostState host;  // destroying an object may run code of the script
  const InterpreterLock gil;
  tensor.reset();
}

Tensor& tensor_at(int64_t handle) { return tensors().at(handle); }
Tensor* find_tensor(int64_t handle) noexcept { return tensors().find(handle); }
bool is_tensor_handle(int64_t handle) noexcept { return handle >> 60 == static_cast<int64_t>(HandleKind::tensor); }

void store_tensor(int64_t* handle, Tensor tensor) {
  auto fresh = std::make_unique<Tensor>(std::move(tensor));
  if (Tensor* known = tensors().find(*handle)) {
    std::swap(*known, *fresh);
    release(std::move(fresh));
  } else {
    *handle = tensors().insert(std::move(fresh));
  }
}

void free_tensor(int64_t handle) noexcept { release(tensors().remove(handle)); }

fpt_arg described_output(const fpt_arg& output) {
  if (!is_tensor_handle(output.handle)) return output;
  const Tensor& tensor = tensor_at(output.handle);
  if (tensor.object || tensor.storage || tensor.owner)
    fail(FPT_ERR_ARGUMENT, "a tensor that a script returned, or that owns a copy, cannot be an output: ",
         "pass the array itself with torch_out");
  fpt_arg described = tensor.arg;
  std::memcpy(described.name, output.name, sizeof described.name);
  return described;
}

std::string device_of(const Tensor& tensor) {
  if (tensor.array.on_host) return "cpu";
  const HostState host;
  const InterpreterLock gil;
  const Ref device = checked(PyObject_GetAttrString(tensor.object.get(), "device"), "asking a tensor for its device");
  const Ref text = checked(PyObject_Str(device.get()), "asking a tensor for its device");
  const char* name = PyUnicode_AsUTF8(text.get());
  if (!name) throw_python_error("asking a tensor for its device");
  return name;
}

void require_memory(const Array& array, int32_t dtype, int32_t rank, const std::string& label) {
  if (!array.on_host)
    fail(FPT_ERR_DEVICE, label, " is in device memory: return it with .cpu() from the script, or load with device=");
  if (array.rank != rank)
    fail(FPT_ERR_RANK, label, " has ", array.rank, " axes, shape ", shape_text(array), " in Fortran order, but the array has rank ",
         rank);
  if (array.dtype != dtype)
    fail(FPT_ERR_DTYPE, label, " is ", dtype_name(array.dtype), ", but the array is ", dtype_fortran_name(dtype),
         ": nothing is copied here, so the types must agree; copy_to and output arrays convert");
}

void ArgumentList::add(const fpt_arg& arg) {
  fpt_arg item = arg;
  const bool owns = is_tensor_handle(arg.handle) || (arg.access == FPT_COPY && arg.rank > 0 && arg.dtype != FPT_TEXT);
  if (owns) {
    Tensor tensor = Tensor::of_arg(arg);
    if (tensor.object || tensor.storage || tensor.owner) {
      item.handle = 0;
      store_tensor(&item.handle, std::move(tensor));
      item.access = FPT_OUT;
    } else {
      item = tensor.arg;
      std::memcpy(item.name, arg.name, sizeof item.name);
    }
  } else {
    require_described(arg, "the argument");
  }
  if (args_.size() == args_.capacity()) args_.reserve(2 * args_.size() + 4);
  args_.push_back(item);
}

void ArgumentList::clear() noexcept {
  for (const fpt_arg& arg : args_)
    if (is_tensor_handle(arg.handle)) free_tensor(arg.handle);
  args_.clear();
}

ArgumentList& wrap_at(int64_t handle) { return wraps().at(handle); }

void create_wrap(int64_t* handle) {
  if (ArgumentList* known = wraps().find(*handle))
    known->clear();
  else
    *handle = wraps().insert(std::make_unique<ArgumentList>());
}

void free_wrap(int64_t handle) noexcept { wraps().remove(handle); }

}  // namespace fpt
