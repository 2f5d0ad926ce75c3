// SPDX-License-Identifier: MIT
#include "plugin/package/tree_spec.hpp"

#include <algorithm>
#include <string_view>

#include "base/error.hpp"

namespace fpt::direct {
namespace {

/// Reads the text from its beginning to its end. Each node has the same three members in the same order.
class Scan {
 public:
  Scan(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void refuse() const {
    fail(FPT_ERR_FORMAT, file_,
         " describes its inputs and results in a way that this version does not know: ", text_.substr(0, 200));
  }

  TreeSpec whole() {
    for (const char* part : {"[", "1", ","}) require(part);  // the version of the format
    TreeSpec spec = node(0);
    require("]");
    if (at_ != text_.size()) refuse();
    return spec;
  }

 private:
  static constexpr int max_depth = 100;

  bool skip(std::string_view wanted) {
    at_ = std::min(text_.find_first_not_of(' ', at_), text_.size());
    const bool is_there = text_.substr(at_, wanted.size()) == wanted;
    if (is_there) at_ += wanted.size();
    return is_there;
  }

  void require(std::string_view wanted) {
    if (!skip(wanted)) refuse();
  }

  /// A string; empty for null. Other escapes than these are in names that Fortran could not write down.
  std::string string() {
    std::string result;
    if (skip("null")) return result;
    require("\"");
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && ++at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') refuse();
      result += text_.substr(at_, 1);
    }
    require("\"");
    return result;
  }

  void name(const char* member) {
    if (string() != member) refuse();
    require(":");
  }

  template <class Item>
  void items(const Item& item) {
    if (skip("]")) return;
    do item();
    while (skip(","));
    require("]");
  }

  TreeSpec node(int depth) {
    TreeSpec spec;
    if (depth > max_depth) refuse();
    require("{");
    name("type");
    spec.type = string();
    require(",");
    name("context");
    const std::string context = string();
    require(",");
    name("children_spec");
    require("[");
    items([&] { spec.children.push_back(node(depth + 1)); });
    require("}");
    if (!spec.is_dictionary()) return spec;
    Scan keys(context, file_);
    keys.require("[");
    keys.items([&] { spec.keys.push_back(keys.string()); });
    if (spec.keys.size() != spec.children.size()) refuse();
    return spec;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace

TreeSpec parse_tree_spec(const std::string& text, const std::string& file) { return Scan(text, file).whole(); }

std::vector<std::string> names_of_inputs(const TreeSpec& arguments, const std::string& file) {
  if (arguments.children.size() != 2) fail(FPT_ERR_FORMAT, file, " does not say what its inputs are");
  std::vector<std::string> names;
  const auto add = [&](const TreeSpec& group) {
    for (std::size_t i = 0; i < group.children.size(); ++i) {
      if (!group.children[i].is_value())
        fail(FPT_ERR_FORMAT, file, " takes a ", group.children[i].type,
             " inside a container or by name, which Fortran cannot pass: export the model with tensors");
      std::string name = group.keys.empty() ? "" : group.keys[i];
      if (!name.empty() && std::find(names.begin(), names.end(), name) != names.end())
        fail(FPT_ERR_FORMAT, file, " has two inputs called ", name,
             ", which Fortran cannot tell apart: export the model with tensors of different names");
      names.push_back(std::move(name));
    }
  };
  for (const TreeSpec& argument : arguments.children[0].children)
    if (argument.is_value())
      names.emplace_back();
    else
      add(argument);
  add(arguments.children[1]);
  return names;
}

}  // namespace fpt::direct
