// SPDX-License-Identifier: MIT
#include "calls/tensor.hpp"

#include <cstring>
#include <utility>

#include "base/error.hpp"

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

Tensor Tensor::of_arg(const fpt_arg& arg) {
  require_described(arg, "the array");
  if (is_tensor_handle(arg.handle)) return tensor_at(arg.handle);
  if (arg.dtype == FPT_TEXT) fail(FPT_ERR_KIND, "a string cannot become a tensor: pass it with torch_in");
  Tensor tensor;
  tensor.arg = arg;
  if (Storage storage = claim_copy(arg)) {
    tensor.owner = std::move(storage);
    tensor.arg.access = FPT_IN;
    tensor.arg.handle = 0;
  }
  tensor.array = array_of(tensor.arg);
  return tensor;
}

Tensor Tensor::of_result(const Array& seen, std::shared_ptr<void> owner, PyObject* object, bool same_layout) {
  Tensor tensor;
  tensor.array = same_layout ? seen : reversed(seen);
  tensor.arg = argument_of(tensor.array);
  tensor.owner = std::move(owner);
  tensor.object = object;
  tensor.same_layout = same_layout;
  return tensor;
}

fpt_arg Tensor::named_as(const fpt_arg& reference) const noexcept {
  fpt_arg named = arg;
  std::memcpy(named.name, reference.name, sizeof named.name);
  return named;
}

Tensor& tensor_at(int64_t handle) { return tensors().at(handle); }
Tensor* find_tensor(int64_t handle) noexcept { return tensors().find(handle); }

void store_tensor(int64_t* handle, Tensor tensor) {
  if (Tensor* known = tensors().find(*handle))
    std::swap(*known, tensor);  // what it held ends here
  else
    *handle = tensors().insert(std::make_unique<Tensor>(std::move(tensor)));
}

void free_tensor(int64_t handle) noexcept { tensors().remove(handle); }

fpt_arg tensor_argument(int64_t handle) {
  tensor_at(handle);
  fpt_arg arg = argument_of({});
  arg.handle = handle;
  return arg;
}

fpt_arg described_output(const fpt_arg& output) {
  if (!is_tensor_handle(output.handle)) return output;
  const Tensor& tensor = tensor_at(output.handle);
  if (tensor.owner)
    fail(FPT_ERR_ARGUMENT, "a tensor that a script returned, or that owns a copy, cannot be an output: ",
         "pass the array itself with torch_out");
  return tensor.named_as(output);
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

void ArgumentList::add(const fpt_arg& arg) {
  fpt_arg item = arg;
  const bool owns = is_tensor_handle(arg.handle) || (arg.access == FPT_COPY && arg.rank > 0 && arg.dtype != FPT_TEXT);
  if (owns) {
    Tensor tensor = Tensor::of_arg(arg);
    if (tensor.owner) {
      item.handle = 0;
      store_tensor(&item.handle, std::move(tensor));
      item.access = FPT_OUT;
    } else {
      item = tensor.named_as(arg);
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

HeldArguments::HeldArguments(const ArgumentList& list) : args_(list.args_) {
  for (const fpt_arg& arg : args_)
    if (is_tensor_handle(arg.handle)) owners_.push_back(tensor_at(arg.handle).owner);
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
