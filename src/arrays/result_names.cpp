// SPDX-License-Identifier: MIT
#include "arrays/result_names.hpp"

#include <algorithm>
#include <cstring>

#include "arrays/policy.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

template <class Name>
std::string listed(const std::vector<Name>& names) {
  std::string text;
  for (const Name& name : names) text += concat(text.empty() ? "\"" : ", \"", name, "\"");
  return text;
}

std::string listed(const ResultList& results) {
  std::vector<const char*> printable = results.names;
  for (const char*& name : printable)
    if (!name) name = "?";
  return listed(printable);
}

int32_t place_of(const CallName& call, const ResultList& results, const char* wanted) {
  for (int32_t i = 0; i < results.count; ++i) {
    const char* name = results.names[static_cast<std::size_t>(i)];
    if (name && std::strcmp(name, wanted) == 0) return i;
  }
  fail(FPT_ERR_RESULT_NAME, call, " returned no result called \"", wanted, "\"; there ",
       results.count == 1 ? "is " : "are ", listed(results));
}

}  // namespace

void append(std::string& text, const CallName& call) {
  text += call.function;
  if (!call.module.empty()) (text += " of ") += call.module;
}

std::vector<int32_t> pair_outputs(const CallName& call, const ResultList& results, Args outputs) {
  const int32_t count = outputs.count;
  const bool named = outputs[0].name[0] != '\0', has_names = !results.names.empty();
  for (const fpt_arg& output : outputs)
    if ((output.name[0] != '\0') != named) refuse_some_names(concat(call));
  std::vector<int32_t> places(static_cast<std::size_t>(count));
  if (named && has_names) {
    std::transform(outputs.begin(), outputs.end(), places.begin(),
                   [&](const fpt_arg& output) { return place_of(call, results, output.name); });
    return places;
  }
  if (!named && has_names && !results.is_tuple)
    fail(FPT_ERR_RESULT_NAME, call, " returned named results (", listed(results),
         "), so the outputs need names: write torch_out(\"name\", x)");
  if (named && results.count > 0)
    fail(FPT_ERR_RESULT_NAME, call, " returned ", results.count, results.count == 1 ? " result" : " results",
         " without names for named outputs: return a dict, or leave out the names");
  if (results.count != count)
    fail(FPT_ERR_RESULT_COUNT, call, " returned ", results.count, results.count == 1 ? " result" : " results",
         ", but there ", count == 1 ? "is " : "are ", count, count == 1 ? " output" : " outputs",
         results.count == 0 ? ": return the values" : ": pass one for each result, or a torch_results for all");
  for (int32_t i = 0; i < count; ++i) places[static_cast<std::size_t>(i)] = i;
  return places;
}

std::size_t ResultNames::place(int32_t index) const {
  if (index < 1 || index > count())
    fail(FPT_ERR_RESULT_NAME, call_, " returned ", count(), count() == 1 ? " result" : " results",
         "; there is no result ", index);
  return static_cast<std::size_t>(index - 1);
}

int32_t ResultNames::find(const std::string& name) const {
  const auto found = name.empty() ? names_.end() : std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<int32_t>(found - names_.begin()) + 1;
  const bool named = count() > 0 && !names_[0].empty();
  fail(FPT_ERR_RESULT_NAME, call_, " returned no result called \"", name, "\"; ",
       named ? "there are " + listed(names_) : concat("its ", count(), " results have no names: use their index"));
}

std::string ResultNames::label(int32_t index) const {
  const std::string& name = names_[static_cast<std::size_t>(index - 1)];
  return name.empty() ? concat("result ", index, " of ", call_) : concat("result \"", name, "\" of ", call_);
}

}  // namespace fpt
