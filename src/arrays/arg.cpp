// SPDX-License-Identifier: MIT
#include "arrays/arg.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "arrays/copy.hpp"
#include "arrays/texts.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

constexpr int64_t no_handle_left = -1;

// The layout that programs, the Fortran modules and the plug-in were compiled with: a change is a new FPT_ABI.
static_assert(sizeof(fpt_arg) == 256 && alignof(fpt_arg) == 8 && FPT_ABI == 1);
static_assert(offsetof(fpt_arg, data) == 0 && offsetof(fpt_arg, u) == 8 && offsetof(fpt_arg, name) == 120);
static_assert(offsetof(fpt_arg, dtype) == 184 && offsetof(fpt_arg, rank) == 186 && offsetof(fpt_arg, access) == 187);
static_assert(offsetof(fpt_arg, status) == 188 && offsetof(fpt_arg, handle) == 192 && offsetof(fpt_arg, length) == 200);

fpt_status refuse(fpt_arg& arg, fpt_status status, int64_t value) {
  arg.status = status;
  arg.length = value;
  return status;
}

int64_t trimmed_length(const char* text, int64_t length) noexcept {
  while (length > 0 && text[length - 1] == ' ') --length;
  return length < 0 ? 0 : length;
}

/// In pieces: GCC clears more than 96 bytes at a time with an instruction that takes 10 ns to begin.
void clear(fpt_arg& arg) noexcept {
  std::memset(arg.spare, 0, sizeof arg.spare);
  std::memset(arg.name, 0, sizeof arg.name);
  std::memset(arg.u.array.strides, 0, sizeof arg.u.array.strides);
  arg.length = 0;
  arg.handle = 0;
  arg.data = nullptr;
  std::memset(arg.u.array.extents, 0, sizeof arg.u.array.extents);
  arg.dtype = FPT_NONE;
  arg.rank = 0;
  arg.access = FPT_IN;
  arg.status = FPT_OK;
}

/// "bool, int8, ..."
std::string argument_types() {
  std::string names;
  for (const DtypeFacts& facts : dtype_table)
    if (facts.use == DtypeUse::argument) names.append(names.empty() ? "" : ", ").append(facts.name);
  return names;
}

constexpr int8_t no_access = -1;

bool set_access(fpt_arg& arg, int32_t access) noexcept {
  const bool is_known = access >= FPT_IN && access <= FPT_COPY;
  arg.access = is_known ? static_cast<int8_t>(access) : no_access;
  return is_known;
}

}  // namespace

CopyTable& copies() {
  static CopyTable& table = *new CopyTable("an argument made by torch_copy", "torch_copy");
  return table;
}

void FreeDeleter::operator()(void* memory) const noexcept { std::free(memory); }

Storage allocate(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  if (rounded < bytes) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, rounded);
  if (!memory) throw std::bad_alloc();
  return Storage(memory);
}

std::string_view view_trimmed(const char* text, int64_t length) noexcept {
  if (!text) return {};
  return {text, static_cast<std::size_t>(trimmed_length(text, length))};
}

fpt_status describe_array(fpt_arg& arg, void* data, int32_t dtype, int32_t rank, const int64_t* extents,
                          const int64_t* strides, int32_t access) {
  clear(arg);
  arg.data = data;
  arg.dtype = static_cast<int16_t>(dtype);
  if (!set_access(arg, access)) return refuse(arg, FPT_ERR_ARGUMENT, access);
  if (rank < 0 || rank > FPT_MAX_RANK) return refuse(arg, FPT_ERR_RANK, rank);
  arg.rank = static_cast<int8_t>(rank);
  if (!data) return refuse(arg, FPT_ERR_UNALLOCATED, 0);
  const bool fortran_logical = dtype_facts(dtype).use == DtypeUse::scalar;
  if (!is_argument(dtype) && !(fortran_logical && rank == 0)) {
    if (!fortran_logical) arg.dtype = FPT_NONE;
    return refuse(arg, FPT_ERR_KIND, dtype);
  }

  const int64_t size = static_cast<int64_t>(dtype_size(dtype));
  const bool is_read = access == FPT_COPY || (rank == 0 && access == FPT_IN);
  if (is_read && is_device_memory(data)) return refuse(arg, FPT_ERR_DEVICE, 0);
  if (rank == 0) {
    if (access == FPT_OUT) return FPT_OK;
    if (fortran_logical) {
      bool value = false;  // true in every kind is some bit of the lowest byte
      for (int64_t i = 0; i < size; ++i) value = value || static_cast<unsigned char*>(data)[i] != 0;
      arg.u.value[0] = value;
      arg.dtype = FPT_BOOL;
    } else {
      std::memcpy(arg.u.value, data, static_cast<std::size_t>(size));
    }
    return FPT_OK;
  }

  int64_t contiguous = size, bytes = size, span, reach = size, odd_stride = 0;
  bool too_wide = false;
  for (int32_t i = 0; i < rank; ++i) {
    const int64_t stride = strides ? strides[i] : contiguous;
    if (extents[i] < 0) return refuse(arg, FPT_ERR_ARGUMENT, extents[i]);
    if (stride % size != 0 && extents[i] > 1) odd_stride = stride;
    arg.u.array.extents[i] = extents[i];
    arg.u.array.strides[i] = stride;
    // other axes of an array without elements count as well: torch and NumPy multiply them, too
    if (__builtin_mul_overflow(contiguous, std::max<int64_t>(extents[i], 1), &contiguous))
      return refuse(arg, FPT_ERR_ARGUMENT, extents[i]);
    bytes *= extents[i];
    too_wide |= __builtin_mul_overflow(extents[i] - 1, stride, &span);
    too_wide |= span < 0 ? __builtin_sub_overflow(reach, span, &reach) : __builtin_add_overflow(reach, span, &reach);
  }
  // a copy is packed, and the stride of a single element, or of none, is never used
  if (odd_stride != 0 && bytes > 0 && access != FPT_COPY) return refuse(arg, FPT_ERR_STRIDE, odd_stride);
  too_wide |= __builtin_add_overflow(reinterpret_cast<intptr_t>(data), reach, &span);
  // torch ends the process when it finds this out
  if (too_wide && bytes > 0) return refuse(arg, FPT_ERR_ARGUMENT, *std::max_element(extents, extents + rank));
  if (access != FPT_COPY) return FPT_OK;

  const Array source = array_of(arg);
  Array target = source;
  set_contiguous(target);
  try {
    Storage storage = allocate(static_cast<std::size_t>(bytes));
    target.data = storage.get();
    copy_same_type(source, target);
    std::memcpy(arg.u.array.strides, target.strides, static_cast<std::size_t>(rank) * sizeof(int64_t));
    arg.data = target.data;
    arg.handle = copies().insert(std::make_unique<Storage>(std::move(storage)));
  } catch (const std::bad_alloc&) {
    return refuse(arg, FPT_ERR_MEMORY, bytes);
  } catch (const Error& error) {  // of the table
    return refuse(arg, error.status(), no_handle_left);
  }
  return FPT_OK;
}

fpt_status describe_memory(fpt_arg& arg, void* data, std::string_view dtype, int32_t rank, const int64_t* extents,
                           int32_t access) {
  const int32_t found =
      find_dtype([&](const DtypeFacts& facts) { return facts.use == DtypeUse::argument && dtype == facts.name; });
  if (found == FPT_NONE) {
    clear(arg);
    set_access(arg, access);
    dtype.copy(arg.u.text, FPT_MAX_INLINE_TEXT);
    return refuse(arg, FPT_ERR_ARGUMENT, 0);
  }
  alignas(16) static char nothing[16];  // allocators return null for no bytes
  const int32_t axes = rank <= FPT_MAX_RANK ? std::max(rank, 0) : 0;
  if (!data && std::count(extents, extents + axes, 0) > 0) data = nothing;
  return describe_array(arg, data, found, rank, extents, nullptr, access);
}

fpt_status describe_text(fpt_arg& arg, const char* text, int64_t length, int32_t access) {
  clear(arg);
  arg.dtype = FPT_TEXT;
  if (!set_access(arg, access)) return refuse(arg, FPT_ERR_ARGUMENT, access);
  if (!text || length < 0) return refuse(arg, text ? FPT_ERR_ARGUMENT : FPT_ERR_UNALLOCATED, length);
  if (access == FPT_OUT) {
    arg.data = const_cast<char*>(text);
    arg.length = length;
    return FPT_OK;
  }
  if (is_device_memory(text)) return refuse(arg, FPT_ERR_DEVICE, 0);
  const int64_t kept = trimmed_length(text, length);
  arg.length = kept;
  if (kept <= FPT_MAX_INLINE_TEXT)
    std::memcpy(arg.u.text, text, static_cast<std::size_t>(kept));
  else
    keep_text(arg, std::string(text, static_cast<std::size_t>(kept)));
  return FPT_OK;
}

fpt_status name_arg(fpt_arg& arg, const char* name, int64_t length) {
  const int64_t kept = name ? trimmed_length(name, length) : 0;
  if (kept == 0 || kept > FPT_MAX_NAME) {
    if (kept > 0) std::memcpy(arg.name, name, FPT_MAX_NAME);
    return arg.status ? arg.status : refuse(arg, FPT_ERR_ARGUMENT, kept ? kept : -1);
  }
  std::memset(arg.name, 0, sizeof arg.name);
  std::memcpy(arg.name, name, static_cast<std::size_t>(kept));
  return arg.status;
}

Array array_of(const fpt_arg& arg) noexcept {
  Array array;
  array.data = arg.data;
  array.dtype = arg.dtype;
  array.rank = arg.rank;
  if (arg.rank > 0) {
    std::memcpy(array.extents, arg.u.array.extents, sizeof array.extents);
    std::memcpy(array.strides, arg.u.array.strides, sizeof array.strides);
  }
  return array;
}

Array placed_array_of(const fpt_arg& arg) noexcept {
  Array array = array_of(arg);
  array.device = device_of(arg.data);
  return array;
}

fpt_arg argument_of(const Array& array) noexcept {
  fpt_arg arg;
  clear(arg);
  arg.data = array.data;
  arg.dtype = static_cast<int16_t>(array.dtype);
  arg.rank = static_cast<int8_t>(array.rank);
  arg.access = FPT_OUT;
  get_axes(array, arg.u.array.extents, arg.u.array.strides);
  return arg;
}

std::string_view text_of(const fpt_arg& arg) noexcept {
  return {arg.data ? static_cast<const char*>(arg.data) : arg.u.text, static_cast<std::size_t>(arg.length)};
}

std::string argument_label(const char* what, int32_t index, const fpt_arg& arg) {
  return arg.name[0] ? concat(what, " ", index + 1, " (\"", arg.name, "\")") : concat(what, " ", index + 1);
}

void require_described(const fpt_arg& arg, const std::string& what) {
  const auto value = arg.length;
  switch (arg.status) {
    case FPT_OK:
      return;
    case FPT_ERR_UNALLOCATED:
      fail(FPT_ERR_UNALLOCATED, what,
           " has no memory: allocate the array, or associate the pointer, before it is described. An array constructor "
           "without elements has none either: describe a variable of size 0");
    case FPT_ERR_RANK:
      fail(FPT_ERR_RANK, what, " has rank ", value, "; at most ", FPT_MAX_RANK, " axes can be passed");
    case FPT_ERR_STRIDE:
      fail(FPT_ERR_STRIDE, what, " has elements of ", dtype_size(arg.dtype), " bytes every ", value,
           " bytes, which no tensor can express: ",
           arg.access == FPT_OUT ? "pass an array of its own, and assign that to it" : "pass torch_copy of it");
    case FPT_ERR_DEVICE:
      fail(FPT_ERR_DEVICE, what, " is in device memory, which this version cannot read: update the host copy and ",
           "describe that, without use_device");
    case FPT_ERR_NOT_LOADED:
      fail(FPT_ERR_NOT_LOADED, what, " is a tensor without contents: call from_array, or assign something, first");
    case FPT_ERR_MEMORY:
      if (value == no_handle_left)
        fail(FPT_ERR_MEMORY, what, " cannot be copied: millions of copies wait for the calls that they were made for. ",
             "Describe an argument with torch_copy only where a call with it follows");
      fail(FPT_ERR_MEMORY, "no memory for a copy of ", what, " (", value, " bytes)");
    case FPT_ERR_KIND:
      if (is_logical(arg.dtype))
        fail(FPT_ERR_KIND, what, " is an array of default or another kind of logical (", dtype_size(arg.dtype),
             " bytes); only logical(c_bool) arrays can be passed: ",
             arg.access == FPT_OUT ? "declare one" : "write torch_copy(logical(x, c_bool))");
      fail(FPT_ERR_KIND, what, " has a type or kind that torch and NumPy do not have (",
           arg.u.text[0] ? arg.u.text : concat("type code ", value),
           "); integer(1,2,4,8), real(4,8), complex(4,8), logical(c_bool) arrays, logical and character scalars can be "
           "passed: ",
           arg.access == FPT_OUT ? "declare a variable of one of them"
                                 : "convert it to one of them, as by torch_copy(real(x, real64))",
           ", or pass components of a derived type");
    case FPT_ERR_ARGUMENT:
      if (arg.access == no_access)
        fail(FPT_ERR_ARGUMENT, what, " was described with the access ", value, ", which is none of FPT_IN, FPT_OUT, ",
             "FPT_COPY");
      if (arg.dtype == FPT_NONE && arg.handle == 0)
        fail(FPT_ERR_ARGUMENT, "the element type of ", what, " is '", arg.u.text, "'; valid are ", argument_types());
      if (value > 1 && arg.name[FPT_MAX_NAME - 1] == '\0')
        fail(FPT_ERR_ARGUMENT, what, " could not be described: with an extent of ", value,
             " it reaches over more than 2^63 bytes, counting empty axes as one element");
      if (arg.name[0] && value > FPT_MAX_NAME)
        fail(FPT_ERR_ARGUMENT, "the name \"", arg.name, "...\" of ", what, " has ", value, " characters; at most ",
             FPT_MAX_NAME, " are possible");
      fail(FPT_ERR_ARGUMENT, what, " could not be described: its name is empty, or an extent is negative or unknown",
           " (assumed-size arrays need an explicit section such as x(1:n))");
    default:
      fail(arg.status, what, " could not be described");
  }
}

Storage claim_copy(const fpt_arg& arg) {
  if (arg.access != FPT_COPY || arg.rank == 0 || arg.status != FPT_OK || arg.dtype == FPT_TEXT) return {};
  std::unique_ptr<Storage> copy = copies().remove(arg.handle);
  if (!copy)
    fail(FPT_ERR_FREED, "an argument made by torch_copy lives for one call, and that call has been made: ",
         "write torch_copy(...) again in the next call");
  return std::move(*copy);
}

void discard_copies(Args args) noexcept {
  if (!args.first) return;
  for (const fpt_arg& arg : args)
    if (arg.access == FPT_COPY && arg.handle != 0) copies().remove(arg.handle);
}

}  // namespace fpt
