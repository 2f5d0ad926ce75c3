// SPDX-License-Identifier: MIT
/// Bodies of the C interface, part three: tensors, operators, scopes, procedures. Knows nothing of Python.
#include "base/kept_lock.hpp"
#include "base/last_script.hpp"
#include "base/visit.hpp"
#include "calls/guard.hpp"
#include "direct/tensor_copy.hpp"
#include "values/engine.hpp"
#include "values/fortran_functions.hpp"
#include "values/operators.hpp"
#include "values/procedures.hpp"
#include "values/scopes.hpp"

using namespace fpt;

namespace {

/// Null for the operand that is a scalar: the one without a handle, beside one that has one.
TensorPtr operand_at(int64_t handle, int64_t other, const fpt_arg* scalar) {
  return handle == 0 && other != 0 && scalar ? nullptr : tensor_at(handle);
}

}  // namespace

extern "C" {

fpt_status fpt_tensor_set(fpt_tensor* tensor, fpt_arg* arg) { return fpt_tensor_from(tensor, arg, 0); }

fpt_status fpt_tensor_from(fpt_tensor* tensor, fpt_arg* arg, int32_t same_layout) {
  return guard([&] { store_tensor(tensor, Tensor::of_arg(*arg, is_same_layout(same_layout))); });
}

fpt_status fpt_tensor_arg(fpt_tensor tensor, fpt_arg* arg) {
  const fpt_status status = guard([&] { *arg = tensor_argument(tensor); });
  if (status != FPT_OK)
    guard([&] {
      *arg = argument_of({});
      arg->handle = tensor;  // a call that uses it says the same
      if (!is_tensor_handle(tensor)) arg->status = status;
    });
  return status;
}

fpt_status fpt_tensor_info(fpt_tensor tensor, int32_t* dtype, int32_t* rank, int64_t extents[], char device[]) {
  return guard_call([&] {
    const TensorPtr held = tensor_at(tensor);
    const Array array = held->array();
    *dtype = array.dtype;
    *rank = array.rank;
    int64_t strides[FPT_MAX_RANK];
    get_axes(array, extents, strides);
    const std::string name = device_name(array.device);
    device[name.copy(device, 31)] = '\0';
  });
}

fpt_status fpt_tensor_data(fpt_tensor tensor, int32_t dtype, int32_t rank, void** data, int64_t extents[],
                           int64_t strides[]) {
  return guard_call([&] {
    const TensorPtr held = named_at(tensor);
    const Array array = held->array();
    require_pointer(array, dtype, rank, "the tensor");
    hand_out_memory(array, data, extents, strides);
  });
}

int32_t fpt_tensor_is_set(fpt_tensor tensor) {
  int32_t is_set = 0;
  guard([&] { is_set = is_tensor_set(tensor) ? 1 : 0; });
  return is_set;
}

void* fpt_tensor_address(fpt_tensor tensor) {
  const void* address = nullptr;
  guard([&] { address = tensor_address(tensor); });
  return const_cast<void*>(address);
}

void fpt_tensor_free(fpt_tensor tensor) {
  guard([&] { free_tensor(tensor); });
}

void fpt_tensor_own(const fpt_tensor* home, fpt_tensor before) {
  guard([&] { own_tensor(home, before); });
}

void fpt_tensor_disown(const fpt_tensor* home, fpt_tensor before) {
  guard([&] { disown_tensor(home, before); });
}

void fpt_tensor_end_owner(fpt_tensor* home) {
  guard([&] { end_owner(home); });
}

fpt_status fpt_tensor_assign(fpt_tensor* left, fpt_tensor right) {
  return guard([&] {
    if (!is_bound(*left)) return assign_tensor(left, right);  // another name needs no Python
    const Visit visit;
    const WithoutKeptLock others;
    leave_last_script();
    assign_tensor(left, right);
  });
}

fpt_status fpt_tensor_operate(int32_t operation, fpt_tensor left, fpt_tensor right, fpt_arg* scalar,
                              fpt_tensor* tensor) {
  const fpt_status status = guard_call([&] {
    const TensorPtr first = operand_at(left, right, scalar), second = operand_at(right, left, scalar);
    *tensor = insert_result(operate(operation, first, second, scalar));
  });
  if (status != FPT_OK) fpt_tensor_fail(tensor, status);
  return status;
}

fpt_status fpt_tensor_let(int32_t what, fpt_tensor target, fpt_tensor first, fpt_tensor second, int32_t reduction) {
  return guard_call(CallFacts(0, name_of_values(what)), [&] {
    leave_last_script();
    let(what, tensor_at(target), tensor_at(first), second == 0 ? nullptr : tensor_at(second), reduction);
  });
}

fpt_status fpt_tensor_backward(fpt_tensor tensor, const fpt_tensor* gradient, int32_t retain_graph) {
  return guard_call(CallFacts(0, "backward"), [&] {
    leave_last_script();
    backward(tensor_at(tensor), gradient ? tensor_at(*gradient) : nullptr, retain_graph != 0);
  });
}

void fpt_tensor_fail(fpt_tensor* tensor, fpt_status status) {
  *tensor = 0;
  guard([&] { *tensor = insert_result(Tensor::of_failure(Error(status, last_error()))); });
}

fpt_status fpt_tensor_gradient(fpt_tensor tensor, fpt_tensor* gradient) {
  return guard([&] { store_tensor(gradient, Tensor::of_gradient(named_at(tensor))); });
}

fpt_status fpt_tensor_copy(fpt_tensor tensor, fpt_arg* output, int32_t cast) {
  return guard_call([&] { copy_tensor(*tensor_at(tensor), *output, cast != 0); });
}

fpt_status fpt_scope_begin(fpt_scope* scope, const char* name, int64_t name_len) {
  return guard([&] { begin_scope(scope, view_trimmed(name, name_len)); });
}

fpt_status fpt_scope_end(fpt_scope scope) {
  return guard([&] { end_scope(scope); });
}

void fpt_scope_leave(const fpt_scope* home) {
  guard([&] { leave_scope(home); });
}

fpt_status fpt_scope_keep(fpt_scope scope, fpt_tensor tensor) {
  return guard([&] { keep_in_scope(scope, tensor); });
}

fpt_status fpt_procedure_register(const char* name, int64_t name_len, fpt_procedure forward, fpt_procedure adjoint,
                                  void* context, int32_t noutputs) {
  return guard([&] { register_procedure(trimmed(name, name_len), forward, adjoint, context, noutputs); });
}

fpt_status fpt_scope_autocast(fpt_scope scope, const char* device, int64_t device_len, const char* dtype,
                              int64_t dtype_len) {
  return guard_call([&] { enter_autocast(scope, trimmed(device, device_len), trimmed(dtype, dtype_len)); });
}

fpt_status fpt_scope_gradients(fpt_scope scope, int32_t wanted) {
  return guard_call([&] { set_gradients(scope, wanted != 0); });
}

int32_t fpt_scope_is_open() {
  int32_t is_open = 0;
  guard([&] { is_open = is_in_scope() ? 1 : 0; });
  return is_open;
}

}  // extern "C"
