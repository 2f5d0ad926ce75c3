// SPDX-License-Identifier: MIT
#include "ftr/named_operator.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "ftr/refusal.hpp"

namespace ftr {
namespace {

/// Operators that open files or write texts.
constexpr std::array refused = {"aten::from_file", "aten::_from_file", "aten::_print", "aten::warn", "aten::save"};

void require_allowed(const std::string& name, const std::string& overload) {
  const bool is_known = name.compare(0, 6, "aten::") == 0;
  const bool is_refused = std::find(refused.begin(), refused.end(), name) != refused.end() ||
                          (name == "aten::_assert_async" && overload == "msg");
  if (!is_known || is_refused)
    fail(Why::format, "it calls the operator ", name.substr(0, 200), ", which a saved recording may not call");
}

/// What a schema has got since it was the one of a file: nothing, or arguments with defaults, which torch puts before
/// those that results are written to. Each way back is compared as a text, so that nothing of the file is parsed.
std::optional<AddedArguments> added_since(const std::string& before, const c10::FunctionSchema& present) {
  if (concat(present) == before) return AddedArguments{};
  std::vector<c10::Argument> arguments = present.arguments();
  auto end = std::find_if(arguments.begin(), arguments.end(), [](const auto& each) { return each.is_out(); });
  AddedArguments made{static_cast<std::size_t>(end - arguments.begin()), {}};
  while (made.first > 0 && arguments[made.first - 1].default_value()) {
    --made.first;
    made.defaults.insert(made.defaults.begin(), *arguments[made.first].default_value());
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(made.first));
    if (concat(present.cloneWithArguments(arguments)) == before) return made;
  }
  return std::nullopt;
}

}  // namespace

NamedOperator named_operator(const std::string& name, const std::string& overload, const std::string& schema) {
  require_allowed(name, overload);
  const auto found = c10::Dispatcher::singleton().findSchema({name, overload});
  if (!found)
    fail(Why::format, "it calls the operator ", name, overload.empty() ? "" : ".", overload,
         ", which this torch lacks");
  std::optional<AddedArguments> added = added_since(schema, found->schema());
  if (!added)
    fail(Why::format, "it calls ", name, " as ", schema.substr(0, 500), ", and this torch has ",
         concat(found->schema()), ": write the file again with this torch");
  return {*found, std::move(*added)};
}

}  // namespace ftr
