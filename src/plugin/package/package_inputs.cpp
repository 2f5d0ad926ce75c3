// SPDX-License-Identifier: MIT
#include "plugin/package/package_inputs.hpp"

#include <cstdlib>
#include <string_view>

namespace fpt::direct {
namespace {

constexpr auto nowhere = std::string::npos;

/// The number that follows `words` at or after `from`, and where; nowhere if there is none.
std::size_t number_after(const std::string& text, const std::string& words, std::size_t from, int64_t& number) {
  const std::size_t at = text.find(words, from);
  if (at == nowhere) return nowhere;
  const char* begin = text.c_str() + at + words.size();
  char* end = nullptr;
  number = std::strtoll(begin, &end, 10);
  return end == begin ? nowhere : at;
}

/// Visit axis and size of all checks that begin with these words.
template <class Visit>
void for_each_limit(const std::string& source, const std::string& words, const char* before_size, const Visit& visit) {
  int64_t axis = 0, size = 0;
  for (std::size_t at = number_after(source, words, 0, axis); at != nowhere;
       at = number_after(source, words, at + 1, axis))
    if (number_after(source, before_size, at, size) != nowhere) visit(axis, size);
}

/// The name of the type in the call that stands before `at`.
std::string dtype_before(const std::string& text, std::size_t at) {
  constexpr std::string_view function = "aoti_torch_dtype_";
  const std::size_t begin = text.rfind(function, at);
  const std::size_t end = text.find('(', begin);
  return begin == nowhere || end > at ? "" : text.substr(begin + function.size(), end - begin - function.size());
}

}  // namespace

std::vector<ExpectedInput> expected_inputs(const std::string& source, std::size_t count) {
  std::vector<ExpectedInput> inputs(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string label = "\"input_handles[" + std::to_string(i) + "]: ";
    if (const std::size_t at = source.find(label + "unmatched dtype"); at != nowhere)
      inputs[i].dtype = dtype_before(source, at);
    for_each_limit(source, label + "unmatched dim value at ",
                   "expected: ", [&](int64_t axis, int64_t size) { inputs[i].sizes[axis] = {size, size}; });
    for_each_limit(source, label + "dim value is too small at ",
                   ">= ", [&](int64_t axis, int64_t size) { inputs[i].sizes[axis].least = size; });
    for_each_limit(source, label + "dim value is too large at ",
                   "<= ", [&](int64_t axis, int64_t size) { inputs[i].sizes[axis].most = size; });
  }
  return inputs;
}

}  // namespace fpt::direct
