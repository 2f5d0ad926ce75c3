// SPDX-License-Identifier: MIT
#include "ftr/stored_tensor.hpp"

#include <c10/core/TensorImpl.h>

namespace ftr {
namespace {

/// Types that files have. Those without a class of storages are stored as bytes.
struct DtypeRow {
  const char *name, *storage;
  at::ScalarType dtype;
};

constexpr DtypeRow rows[] = {{"float64", "DoubleStorage", at::kDouble},
                             {"float32", "FloatStorage", at::kFloat},
                             {"float16", "HalfStorage", at::kHalf},
                             {"bfloat16", "BFloat16Storage", at::kBFloat16},
                             {"int64", "LongStorage", at::kLong},
                             {"int32", "IntStorage", at::kInt},
                             {"int16", "ShortStorage", at::kShort},
                             {"int8", "CharStorage", at::kChar},
                             {"uint8", "ByteStorage", at::kByte},
                             {"bool", "BoolStorage", at::kBool},
                             {"complex128", "ComplexDoubleStorage", at::kComplexDouble},
                             {"complex64", "ComplexFloatStorage", at::kComplexFloat},
                             {"uint16", nullptr, at::kUInt16},
                             {"uint32", nullptr, at::kUInt32},
                             {"uint64", nullptr, at::kUInt64},
                             {"float8_e5m2", nullptr, at::kFloat8_e5m2},
                             {"float8_e4m3fn", nullptr, at::kFloat8_e4m3fn},
                             {"float8_e5m2fnuz", nullptr, at::kFloat8_e5m2fnuz},
                             {"float8_e4m3fnuz", nullptr, at::kFloat8_e4m3fnuz}};

// An expanded tensor may have more elements than its storage, but not so many that sums over them overflow.
constexpr int64_t most_elements = int64_t{1} << 40;
constexpr std::size_t most_axes = 64;

/// Elements from the first to the last one, both included; zero if there are none.
int64_t span_of(at::IntArrayRef sizes, at::IntArrayRef strides) {
  int64_t count = 1, last = 0;
  bool is_empty = false, is_too_large = false;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    const int64_t size = sizes[axis], stride = strides[axis];
    if (size < 0) fail(Why::format, "an axis of a tensor has the size ", size);
    if (stride < 0) fail(Why::format, "an axis of a tensor has the stride ", stride);
    is_empty = is_empty || size == 0;
    if (size == 0) continue;
    int64_t way = 0;
    is_too_large = is_too_large || __builtin_mul_overflow(size, count, &count) || count > most_elements ||
                   __builtin_mul_overflow(size - 1, stride, &way) || __builtin_add_overflow(last, way, &last);
  }
  if (is_too_large || last == INT64_MAX) fail(Why::format, "a tensor of shape ", sizes, " has too many elements");
  return is_empty ? 0 : last + 1;
}

}  // namespace

std::optional<at::ScalarType> dtype_of_storage(std::string_view name) noexcept {
  for (const DtypeRow& row : rows)
    if (row.storage && name == row.storage) return row.dtype;
  return std::nullopt;
}

std::optional<at::ScalarType> dtype_without_storage(std::string_view name) noexcept {
  for (const DtypeRow& row : rows)
    if (!row.storage && name == row.name) return row.dtype;
  return std::nullopt;
}

const char* stored_name_of(at::ScalarType dtype) noexcept {
  for (const DtypeRow& row : rows)
    if (row.dtype == dtype) return row.storage ? row.storage : row.name;
  return nullptr;
}

at::ScalarType read_dtype(std::string_view name) {
  for (const DtypeRow& row : rows)
    if (name == row.name) return row.dtype;
  fail(Why::format, "there is no element type ", name.substr(0, 100));
}

const char* name_of(at::ScalarType dtype) noexcept {
  for (const DtypeRow& row : rows)
    if (row.dtype == dtype) return row.name;
  return c10::toString(dtype);
}

std::string described(const at::Tensor& tensor) {
  std::string axes;
  for (const int64_t size : tensor.sizes()) axes += (axes.empty() ? "" : ", ") + std::to_string(size);
  return concat(name_of(tensor.scalar_type()), " (", axes, tensor.dim() == 1 ? ",)" : ")");
}

at::Tensor tensor_in_storage(const c10::Storage& storage, at::ScalarType dtype, int64_t offset, at::IntArrayRef sizes,
                             at::IntArrayRef strides) {
  if (sizes.size() != strides.size() || sizes.size() > most_axes)
    fail(Why::format, "a tensor has ", sizes.size(), " sizes and ", strides.size(), " strides");
  const int64_t span = span_of(sizes, strides);
  const auto there = static_cast<int64_t>(storage.nbytes() / c10::elementSize(dtype));
  if (offset < 0 || offset > there || span > there - offset)
    fail(Why::format, "a tensor of shape ", sizes, " and strides ", strides, " from element ", offset,
         " on does not lie within its storage of ", there, " elements");
  // numbers that were left in a file that has just been written are those of tensors
  if (dtype == at::kBool && storage.data() != nullptr) {
    const auto* bytes = static_cast<const unsigned char*>(storage.data()) + offset;
    if (std::any_of(bytes, bytes + span, [](unsigned char byte) { return byte > 1; }))
      fail(Why::format, "a logical tensor has elements that are neither true nor false");
  }
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, offset);
  return tensor;
}

}  // namespace ftr
