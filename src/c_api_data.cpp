// SPDX-License-Identifier: MIT
/// Bodies of the C interface, part two: arguments, lists and results. Knows nothing of Python.
#include <algorithm>

#include "arrays/arg.hpp"
#include "arrays/pinned.hpp"
#include "calls/guard.hpp"
#include "calls/results.hpp"
#include "values/argument_list.hpp"
#include "values/tensor.hpp"

using namespace fpt;

namespace {

/// Describe an argument. A failed description has its text at once, too; the call that uses it makes another one that
/// names the argument.
template <class Describe>
fpt_status describe(fpt_arg* arg, const char* what, const Describe& description) noexcept {
  const fpt_status status = guard([&] {
    description();
    if (arg->status != FPT_OK) require_described(*arg, what);  // a text costs more than the rest
  });
  if (status != FPT_OK) arg->status = status;
  return status;
}

}  // namespace

extern "C" {

fpt_status fpt_arg_array(fpt_arg* arg, void* data, int32_t dtype, int32_t rank, const int64_t extents[],
                         const int64_t strides[], int32_t access) {
  return describe(arg, "the array", [&] { describe_array(*arg, data, dtype, rank, extents, strides, access); });
}

fpt_status fpt_arg_memory(fpt_arg* arg, void* data, const char* dtype, int64_t dtype_len, int32_t rank,
                          const int64_t extents[], int32_t access) {
  return describe(arg, "the array",
                  [&] { describe_memory(*arg, data, view_trimmed(dtype, dtype_len), rank, extents, access); });
}

fpt_status fpt_arg_text(fpt_arg* arg, const char* text, int64_t length, int32_t access) {
  return describe(arg, "the string", [&] { describe_text(*arg, text, length, access); });
}

fpt_status fpt_arg_name(fpt_arg* arg, const char* name, int64_t length) {
  return describe(arg, "the argument", [&] { name_arg(*arg, name, length); });
}

fpt_status fpt_pin(const fpt_arg* arg) {
  return guard_call([&] { pin(*arg); });
}

fpt_status fpt_unpin(const fpt_arg* arg) {
  return guard_call([&] { unpin(*arg); });
}

fpt_status fpt_wrap_create(fpt_wrap* wrap) {
  return guard([&] { create_wrap(wrap); });
}

fpt_status fpt_wrap_add(fpt_wrap wrap, fpt_arg* arg) {
  return guard([&] { wrap_at(wrap).add(*arg); });
}

fpt_status fpt_wrap_clear(fpt_wrap wrap) {
  return guard([&] { wrap_at(wrap).clear(); });
}

void fpt_wrap_free(fpt_wrap wrap) {
  guard([&] { free_wrap(wrap); });
}

fpt_status fpt_results_count(fpt_results results, int32_t* count) {
  return guard([&] { *count = results_table().at(results).names().count(); });
}

fpt_status fpt_results_name(fpt_results results, int32_t index, const char** name, int64_t* length) {
  return guard([&] { hand_out(results_table().at(results).names().name(index), name, length); });
}

fpt_status fpt_results_find(fpt_results results, const char* name, int64_t name_len, int32_t* index) {
  return guard([&] { *index = results_table().at(results).names().find(trimmed(name, name_len)); });
}

fpt_status fpt_results_get(fpt_results results, int32_t index, fpt_tensor* tensor) {
  return guard_call([&] { store_tensor(tensor, results_table().at(results).tensor(index)); });
}

fpt_status fpt_results_data(fpt_results results, int32_t index, int32_t dtype, int32_t rank, void** data,
                            int64_t extents[], int64_t strides[]) {
  return guard_call(
      [&] { hand_out_memory(results_table().at(results).memory(index, dtype, rank), data, extents, strides); });
}

fpt_status fpt_results_copy(fpt_results results, int32_t index, fpt_arg* output, int32_t cast) {
  return guard_call([&] { results_table().at(results).copy_to(index, *output, cast != 0); });
}

fpt_status fpt_results_text(fpt_results results, int32_t index, const char** text, int64_t* length) {
  return guard_call([&] { hand_out(results_table().at(results).text(index), text, length); });
}

void fpt_results_free(fpt_results results) {
  guard([&] { results_table().remove(results); });
}

}  // extern "C"
