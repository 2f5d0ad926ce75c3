// SPDX-License-Identifier: MIT
#include "plugin/tensors.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>

#include "arrays/arg.hpp"
#include "arrays/device.hpp"
#include "arrays/policy.hpp"
#include "base/error.hpp"
#include "plugin/stream.hpp"

namespace fpt::direct {
namespace {

at::Device at_device(Device device) {
  if (device.is_host()) return at::kCPU;
  if (!c10::impl::hasDeviceGuardImpl(at::kCUDA))
    refuse_memory(device, "which this libtorch cannot use: it was built for the host only");
  return {at::kCUDA, static_cast<c10::DeviceIndex>(device.index)};
}

constexpr std::size_t max_entries = 64;  // for each thread; searched one after the other

struct Axes {
  std::array<int64_t, FPT_MAX_RANK> sizes, strides;
  std::size_t rank;
  at::IntArrayRef size_list() const { return {sizes.data(), rank}; }
  at::IntArrayRef stride_list() const { return {strides.data(), rank}; }
};

/// Sizes, and strides in elements, in the order of the model.
Axes axes_of(const Array& array, bool same_layout) {
  Array seen = same_layout ? array : reversed(array);
  make_strides_plain(seen);
  const auto size = static_cast<int64_t>(dtype_size(array.dtype));
  Axes axes{{}, {}, static_cast<std::size_t>(array.rank)};
  for (std::size_t i = 0; i < axes.rank; ++i) {
    axes.sizes[i] = seen.extents[i];
    axes.strides[i] = seen.strides[i] / size;
  }
  return axes;
}

at::Tensor tensor_with(const Array& array, const Axes& axes, MemoryOwner owner) {
  require_alignment(array);
  // a tensor made in inference mode could not be used in training
  std::optional<c10::InferenceMode> normal;
  if (c10::InferenceMode::is_enabled()) normal.emplace(false);
  const at::Device device = at_device(array.device);
  at::TensorMaker maker = at::for_blob(array.data, axes.size_list());
  maker.strides(axes.stride_list())
      .options(at::TensorOptions(scalar_type_of(array.dtype)).device(device))
      .target_device(device);
  if (owner) {
    const auto release = owner.get_deleter();
    maker.context(owner.release(), release);
  }
  return maker.make_tensor();
}

}  // namespace

at::ScalarType scalar_type_of(int32_t dtype) {
  if (is_of_tensors(dtype)) return static_cast<at::ScalarType>(dtype_facts(dtype).torch_scalar_type);
  fail(FPT_ERR_KIND, "an array of type ", dtype_fortran_name(dtype),
       " has no counterpart in torch: pass it with torch_in");
}

int32_t dtype_of(at::ScalarType type) noexcept {
  constexpr std::size_t count = static_cast<std::size_t>(at::ScalarType::NumOptions);
  static const auto* const known = [] {
    auto* made = new std::array<int32_t, count>;
    for (std::size_t i = 0; i < count; ++i)
      (*made)[i] = find_dtype([i](const DtypeFacts& facts) { return facts.torch_scalar_type == static_cast<int>(i); });
    return made;
  }();
  return (*known)[static_cast<std::size_t>(type)];
}

Array array_of_tensor(const at::Tensor& tensor, bool same_layout) {
  Array array;
  array.data = tensor.data_ptr();
  require_numbers(array.data, tensor.numel());
  array.dtype = dtype_of(tensor.scalar_type());
  array.rank = static_cast<int32_t>(tensor.dim());
  if (!tensor.is_cpu()) array.device = {Device::cuda_type, tensor.get_device()};
  const auto size = static_cast<int64_t>(tensor.element_size());
  const at::IntArrayRef sizes = tensor.sizes(), strides = tensor.strides();
  for (int32_t i = 0; i < array.rank; ++i) {
    const int32_t axis = same_layout ? i : array.rank - 1 - i;
    array.extents[i] = sizes[static_cast<std::size_t>(axis)];
    array.strides[i] = strides[static_cast<std::size_t>(axis)] * size;
  }
  return array;
}

at::Tensor tensor_on(const Array& array, bool same_layout, MemoryOwner owner) {
  return tensor_with(array, axes_of(array, same_layout), std::move(owner));
}

at::Tensor reversed_view(const at::Tensor& tensor) {
  c10::SmallVector<int64_t, FPT_MAX_RANK> axes;
  for (int64_t axis = tensor.dim(); axis-- > 0;) axes.push_back(axis);
  return tensor.permute(axes);
}

TensorFlags flags_of(const at::Tensor& tensor) {
  TensorFlags flags;
  flags.requires_grad = tensor.requires_grad();
  flags.has_graph = flags.requires_grad && tensor.grad_fn() != nullptr;
  flags.is_inference = tensor.is_inference();
  flags.is_view = flags.has_graph && tensor.is_view();
  flags.is_of_leaf = flags.is_view && tensor._base().is_leaf();
  return flags;
}

TensorFacts facts_of(const at::Tensor& tensor) {
  const int32_t dtype = dtype_of(tensor.scalar_type());
  return {flags_of(tensor), dtype == FPT_NONE ? c10::toString(tensor.scalar_type()) : dtype_name(dtype),
          tensor.sizes().vec()};
}

std::string kind_of(const at::Tensor& tensor, bool same_layout) { return text_of(facts_of(tensor), same_layout); }

void wait_for(Device device) {
  if (device.is_host()) return;
  const at::Device there = at_device(device);
  if (!calls_wait()) return;
  const c10::impl::VirtualGuardImpl guard(there.type());
  guard.synchronizeStream(guard.getStream(there));
}

bool is_unshared(const at::Tensor& tensor) noexcept {
  return tensor.use_count() == 1 && tensor.storage().use_count() == 1;
}

bool TensorCache::is_of(const Entry& entry, const fpt_arg& arg) noexcept {
  const Array& array = entry.array;
  if (array.data != arg.data || array.dtype != arg.dtype || array.rank != arg.rank) return false;
  for (int32_t i = 0; i < arg.rank; ++i)
    if (array.extents[i] != arg.u.array.extents[i] || array.strides[i] != arg.u.array.strides[i]) return false;
  return true;
}

/// A model may keep its input, resize it, point it at other memory, or leave a gradient in it.
bool TensorCache::is_untouched(const Entry& entry) noexcept {
  const at::Tensor& tensor = entry.tensor;
  return is_unshared(tensor) && (tensor.const_data_ptr() == entry.array.data || tensor.numel() == 0) &&
         !tensor.unsafeGetTensorImpl()->autograd_meta() && tensor.sizes() == entry.sizes &&
         tensor.strides() == entry.strides;
}

TensorCache::Entry TensorCache::made(const Array& array, bool same_layout) {
  at::Tensor tensor = tensor_with(array, axes_of(array, same_layout), {nullptr, nullptr});
  return {array, tensor, at::DimVector(tensor.sizes()), at::DimVector(tensor.strides())};
}

const at::Tensor& TensorCache::get(const fpt_arg& arg, bool same_layout) {
  std::size_t at = next_;
  if (at >= entries_.size() || !is_of(entries_[at], arg)) {
    at = 0;
    while (at < entries_.size() && !is_of(entries_[at], arg)) ++at;
  }
  if (at < entries_.size()) {
    next_ = at + 1 < entries_.size() ? at + 1 : 0;
    // a GPU's address may be another one's by now
    const Device device = entries_[at].array.device;
    if (!device.is_host() && device_of(arg.data) != device) entries_[at] = made(placed_array_of(arg), same_layout);
    if (!is_untouched(entries_[at])) entries_[at] = made(entries_[at].array, same_layout);
    return entries_[at].tensor;
  }
  Entry fresh = made(placed_array_of(arg), same_layout);
  if (entries_.size() < max_entries) {
    entries_.push_back(std::move(fresh));
    return entries_.back().tensor;
  }
  oldest_ = oldest_ + 1 < entries_.size() ? oldest_ + 1 : 0;
  entries_[oldest_] = std::move(fresh);
  return entries_[oldest_].tensor;
}

const at::Tensor& TensorCache::copied(const fpt_arg& arg, int32_t dtype, bool same_layout) {
  const Array source = array_of(arg);
  Array target = source;
  target.dtype = dtype;
  set_contiguous(target);
  const Axes axes = axes_of(target, same_layout);
  const at::ScalarType type = scalar_type_of(dtype);
  const bool fits = copy_.defined() && is_unshared(copy_) && copy_.scalar_type() == type && !copy_.requires_grad() &&
                    copy_.sizes() == axes.size_list() && copy_.strides() == axes.stride_list();
  if (!fits) {
    const c10::InferenceMode normal(false);
    copy_ = at::empty_strided(axes.size_list(), axes.stride_list(), type);
  }
  target.data = copy_.data_ptr();
  copy(source, target);
  return copy_;
}

}  // namespace fpt::direct
