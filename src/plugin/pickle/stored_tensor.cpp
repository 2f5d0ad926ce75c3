// SPDX-License-Identifier: MIT
#include "plugin/pickle/stored_tensor.hpp"

#include <c10/core/TensorImpl.h>

namespace fpt::direct {
namespace {

struct DtypeRow {
  const char* name;
  at::ScalarType dtype;
};

constexpr DtypeRow storage_classes[] = {{"DoubleStorage", at::kDouble},
                                        {"FloatStorage", at::kFloat},
                                        {"HalfStorage", at::kHalf},
                                        {"BFloat16Storage", at::kBFloat16},
                                        {"LongStorage", at::kLong},
                                        {"IntStorage", at::kInt},
                                        {"ShortStorage", at::kShort},
                                        {"CharStorage", at::kChar},
                                        {"ByteStorage", at::kByte},
                                        {"BoolStorage", at::kBool},
                                        {"ComplexDoubleStorage", at::kComplexDouble},
                                        {"ComplexFloatStorage", at::kComplexFloat}};

constexpr DtypeRow dtypes_without_storage[] = {{"uint16", at::kUInt16},
                                               {"uint32", at::kUInt32},
                                               {"uint64", at::kUInt64},
                                               {"float8_e5m2", at::kFloat8_e5m2},
                                               {"float8_e4m3fn", at::kFloat8_e4m3fn},
                                               {"float8_e5m2fnuz", at::kFloat8_e5m2fnuz},
                                               {"float8_e4m3fnuz", at::kFloat8_e4m3fnuz}};

// An expanded tensor may have more elements than its storage, but not so many that sums over them overflow.
constexpr int64_t most_elements = int64_t{1} << 40;
constexpr std::size_t most_axes = 64;

template <std::size_t Count>
std::optional<at::ScalarType> dtype_in(const DtypeRow (&rows)[Count], std::string_view name) noexcept {
  for (const DtypeRow& row : rows)
    if (name == row.name) return row.dtype;
  return std::nullopt;
}

/// Elements from the first to the last one, both included; zero if there are none.
int64_t span_of(at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t count = 1, last = 0;
  bool is_empty = false, is_too_large = false;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t size = sizes[axis], stride = strides[axis];
    if (size < 0) fail(FPT_ERR_FORMAT, "an axis of a tensor has the size ", size);
    if (stride < 0) fail(FPT_ERR_FORMAT, "an axis of a tensor has the stride ", stride);
    is_empty = is_empty || size == 0;
    if (size == 0) continue;
    int64_t way = 0;
    is_too_large = is_too_large || __builtin_mul_overflow(size, count, &count) || count > most_elements ||
                   __builtin_mul_overflow(size - 1, stride, &way) || __builtin_add_overflow(last, way, &last);
  }
  if (is_too_large || last == INT64_MAX) fail(FPT_ERR_FORMAT, "a tensor of shape ", sizes, " has too many elements");
  return is_empty ? 0 : last + 1;
}

}  // namespace

std::optional<at::ScalarType> dtype_of_storage(std::string_view name) noexcept {
  return dtype_in(storage_classes, name);
}

std::optional<at::ScalarType> dtype_without_storage(std::string_view name) noexcept {
  return dtype_in(dtypes_without_storage, name);
}

const char* stored_name_of(at::ScalarType dtype) noexcept {
  for (const DtypeRow& row : storage_classes)
    if (row.dtype == dtype) return row.name;
  for (const DtypeRow& row : dtypes_without_storage)
    if (row.dtype == dtype) return row.name;
  return nullptr;
}

at::Tensor tensor_in_storage(const c10::Storage& storage, at::ScalarType dtype, int64_t offset, at::IntArrayRef sizes,
                             at::IntArrayRef strides) {
  if (sizes.size() != strides.size() || sizes.size() > most_axes)
    fail(FPT_ERR_FORMAT, "a tensor has ", sizes.size(), " sizes and ", strides.size(), " strides");
  const int64_t span = span_of(sizes, strides);
  const auto there = static_cast<int64_t>(storage.nbytes() / c10::elementSize(dtype));
  if (offset < 0 || offset > there || span > there - offset)
    fail(FPT_ERR_FORMAT, "a tensor of shape ", sizes, " and strides ", strides, " from element ", offset,
         " on does not lie within its storage of ", there, " elements");
  // numbers that were left in a file that has just been written are those of tensors
  if (dtype == at::kBool && storage.data() != nullptr) {
    const auto* bytes = static_cast<const unsigned char*>(storage.data()) + offset;
    if (std::any_of(bytes, bytes + span, [](unsigned char byte) { return byte > 1; }))
      fail(FPT_ERR_FORMAT, "a logical tensor has elements that are neither true nor false");
  }
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

}  // namespace fpt::direct
