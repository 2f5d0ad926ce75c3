// SPDX-License-Identifier: MIT
#include "torch/image_self_test.hpp"

#include "torch/tensor_image.hpp"
#include "torch/torch_access.hpp"

namespace fpt::torch_access {
namespace {

/// A tensor must show who else refers to it, read from where it has been moved to, and die as if it had not been moved.
bool can_move(const dlpack::ExchangeApi& api) {
  static float elsewhere[8] = {11, 12, 13, 14, 15, 16, 17, 18};
  const Array array = self_test_array();
  dlpack::Slot* slot = dlpack::take_slot(array, nullptr);
  Ref tensor = import_slot(slot);
  TensorImage image;
  image.take(tensor.get(), array.rank);
  const auto shows = [&](const char* method, const Ref& tensor, const TensorImage& image) {
    const Ref holder(PyObject_CallMethod(tensor.get(), method, nullptr));
    PyErr_Clear();
    return holder && !image.is_unshared(tensor.get());
  };
  if (!shows("detach", tensor, image) || !shows("t", tensor, image) || !image.matches(tensor.get()) ||
      !image.is_unshared(tensor.get()))
    return false;
  const Ref other = import_slot(dlpack::take_slot(array, nullptr));  // the object of a storage never goes
  TensorImage image_of_other;
  image_of_other.take(other.get(), array.rank);
  if (!shows("untyped_storage", other, image_of_other)) return false;
  Ref weak(PyWeakref_NewRef(tensor.get(), nullptr));
  if (!weak || image.is_unshared(tensor.get())) return PyErr_Clear(), false;
  weak = Ref();
  const bool moved = image.move(array.data, elsewhere) && image.matches(tensor.get());
  dlpack::Tensor view;
  if (!moved || api.view(tensor.get(), &view) != 0 || view.data != elsewhere) return PyErr_Clear(), false;
  const Ref sum(PyObject_CallMethod(tensor.get(), "sum", nullptr));
  const Ref number(sum ? PyObject_CallMethod(sum.get(), "item", nullptr) : nullptr);
  PyErr_Clear();
  const bool reads = number && PyFloat_AsDouble(number.get()) == 11 + 12 + 13 + 15 + 16 + 17;
  const uint64_t serial = slot->serial;
  tensor = Ref();
  return reads && slot->serial == serial && !slot->alive.load();
}

}  // namespace

Array self_test_array() {
  static float memory[8];
  Array array;
  array.data = memory;
  array.dtype = FPT_FLOAT32;
  array.rank = 2;
  array.extents[0] = 2;
  array.extents[1] = 3;
  array.strides[0] = 4 * static_cast<int64_t>(sizeof(float));
  array.strides[1] = sizeof(float);
  return array;
}

bool learn_images(const dlpack::ExchangeApi& api) {
  const Ref utils(PyImport_ImportModule("torch.utils"));
  if (!utils) return PyErr_Clear(), false;
  const Array array = self_test_array();
  const auto made = [&] { return import_slot(dlpack::take_slot(array, nullptr)); };
  const Ref first = made(), other = made();
  dlpack::Tensor view;
  if (api.view(first.get(), &view) != 0) return PyErr_Clear(), false;
  if (!TensorImage::learn(first.get(), view.shape, view.strides, array.data)) return false;
  const auto shows = [&](auto&& change) {
    const Ref tensor = made();
    TensorImage image;
    image.take(tensor.get(), array.rank);
    const bool before = image.matches(tensor.get());
    const Ref done(change(tensor.get()));
    PyErr_Clear();
    return before && done && !image.matches(tensor.get());
  };
  const auto call = [](const char* method, const char* format, auto... arguments) {
    return [=](PyObject* tensor) { return PyObject_CallMethod(tensor, method, format, arguments...); };
  };
  const bool complete =
      shows(call("t_", nullptr)) && shows(call("resize_", "i", 1)) && shows(call("set_", "O", other.get())) &&
      shows(call("__setattr__", "sO", "data", other.get())) && shows(call("requires_grad_", nullptr)) &&
      shows(call("as_strided_", "(ii)(ii)", 2, 2, 1, 1)) && shows([&](PyObject* tensor) {
        return PyObject_CallMethod(utils.get(), "swap_tensors", "OO", tensor, other.get());
      });
  if (!complete) TensorImage::forget();
  if (complete && can_move(api)) TensorImage::allow_moves();
  return complete;
}

}  // namespace fpt::torch_access
