// SPDX-License-Identifier: MIT
/// Describing arguments: fpt_arg from memory, text and names, and the storage behind torch_copy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/array.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "ftn_pytorch.h"

namespace fpt {

/// Arguments in a row, which belong to the caller.
struct Args {
  fpt_arg* first = nullptr;
  int32_t count = 0;

  Args() = default;
  Args(fpt_arg* first, int32_t count) noexcept : first(first), count(count) {}
  Args(std::vector<fpt_arg>& list) noexcept : first(list.data()), count(static_cast<int32_t>(list.size())) {}

  fpt_arg* begin() const noexcept { return first; }
  fpt_arg* end() const noexcept { return first + (count > 0 ? count : 0); }
  fpt_arg& operator[](int32_t index) const noexcept { return first[index]; }
};

/// Memory from the C allocator, which DLPack deleters can release on any thread.
struct FreeDeleter {
  FPT_API void operator()(void* memory) const noexcept;
};
using Storage = std::unique_ptr<void, FreeDeleter>;

/// At least `bytes` bytes, aligned for vector instructions. Throws std::bad_alloc.
Storage allocate(std::size_t bytes);

/// What torch_copy made for calls that are still to come.
using CopyTable = HandleTable<Storage, HandleKind::copy>;
CopyTable& copies();

/// Fill `arg`; never throws for a bad description, but records it in arg.status, which is also returned.
fpt_status describe_array(fpt_arg& arg, void* data, int32_t dtype, int32_t rank, const int64_t* extents,
                          const int64_t* strides, int32_t access);
/// The same for contiguous memory of a type that has the name `dtype`.
fpt_status describe_memory(fpt_arg& arg, void* data, std::string_view dtype, int32_t rank, const int64_t* extents,
                           int32_t access);
FPT_API fpt_status describe_text(fpt_arg& arg, const char* text, int64_t length, int32_t access);
FPT_API fpt_status name_arg(fpt_arg& arg, const char* name, int64_t length);

/// The memory an argument describes. Only for arguments that are arrays, or scalars passed by reference.
FPT_API Array array_of(const fpt_arg& arg) noexcept;

/// The same with the place of the memory, for which the driver of CUDA may be asked.
FPT_API Array placed_array_of(const fpt_arg& arg) noexcept;

/// An argument that describes memory which is there for the asking: an output.
FPT_API fpt_arg argument_of(const Array& array) noexcept;

/// The text of an argument of type FPT_TEXT; lives as long as the argument and its text_owner() do.
FPT_API std::string_view text_of(const fpt_arg& arg) noexcept;

/// "input 2 (\"dt\")" with a name, "input 2" without; `index` from 0.
FPT_API std::string argument_label(const char* what, int32_t index, const fpt_arg& arg);

/// Throw what was wrong when the argument was described. `what` names it in the text: "input 2 (\"dt\")".
FPT_API void require_described(const fpt_arg& arg, const std::string& what);

/// Take over the storage of a torch_copy argument; empty for every other argument. FPT_ERR_FREED if it was taken.
FPT_API Storage claim_copy(const fpt_arg& arg);

/// FPT_ERR_ARGUMENT for a negative number of arguments, or for none where some are announced.
inline void require_arguments(Args args) {
  if (args.count < 0 || (args.count > 0 && !args.first))
    fail(FPT_ERR_ARGUMENT, "the number of arguments is ", args.count, args.first ? "" : ", but there are none");
}

/// Release what torch_copy stored for arguments of a call that failed before it used them.
void discard_copies(Args args) noexcept;

/// `length` bytes without trailing blanks.
std::string_view view_trimmed(const char* text, int64_t length) noexcept;
inline std::string trimmed(const char* text, int64_t length) { return std::string(view_trimmed(text, length)); }

}  // namespace fpt
