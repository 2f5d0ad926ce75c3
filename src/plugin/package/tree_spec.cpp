// SPDX-License-Identifier: MIT
#include "plugin/package/tree_spec.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/error.hpp"

namespace fpt::direct {
namespace {

/// As much of JSON as these texts use (RFC 8259); numbers and words are kept as text.
struct Json {
  std::string text;  // of a string, a number or a word
  bool is_string = false, is_array = false;
  std::vector<Json> items;
  std::map<std::string, Json> members;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Json whole() {
    Json json = value(0);
    if (peek() != '\0') refuse();
    return json;
  }

  [[noreturn]] void refuse() const {
    fail(FPT_ERR_FORMAT, file_,
         " describes its inputs and results in a way that this version does not know: ", text_.substr(0, 200));
  }

 private:
  static constexpr int max_depth = 100;

  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  void require(char wanted) {
    if (!take(wanted)) refuse();
  }

  Json value(int depth) {
    Json json;
    if (depth > max_depth) refuse();
    if (peek() == '"') {
      json.is_string = true;
      json.text = string();
    } else if (take('[')) {
      json.is_array = true;
      while (!take(']')) {
        if (!json.items.empty()) require(',');
        json.items.push_back(value(depth + 1));
      }
    } else if (take('{')) {
      while (!take('}')) {
        if (!json.members.empty()) require(',');
        const std::string key = string();
        require(':');
        json.members.emplace(key, value(depth + 1));
      }
    } else {
      while (at_ < text_.size() && std::string_view(",]}: \n\t").find(text_[at_]) == std::string_view::npos)
        json.text += text_[at_++];
      if (json.text.empty()) refuse();
    }
    return json;
  }

  std::string string() {
    require('"');
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      char next = text_[at_++];
      if (next == '\\' && at_ < text_.size()) {
        next = text_[at_++];
        if (next == 'u') refuse();  // names that Fortran could not write down
        if (next == 'n') next = '\n';
        if (next == 't') next = '\t';
      }
      result += next;
    }
    require('"');
    return result;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

const Json& member(const Json& json, const char* name, const Parser& parser) {
  const auto found = json.members.find(name);
  if (found == json.members.end()) parser.refuse();
  return found->second;
}

TreeSpec spec_of(const Json& json, const Parser& parser, const std::string& file) {
  TreeSpec spec;
  const Json& type = member(json, "type", parser);
  if (!type.is_string) return spec;  // null
  spec.type = type.text;
  const auto ends_with = [&](std::string_view end) {
    return spec.type.size() >= end.size() && spec.type.compare(spec.type.size() - end.size(), end.size(), end) == 0;
  };
  spec.kind = ends_with("tuple")                       ? TreeSpec::Kind::tuple
              : ends_with(".list")                     ? TreeSpec::Kind::list
              : ends_with("dict") || ends_with("Dict") ? TreeSpec::Kind::dict
                                                       : TreeSpec::Kind::other;
  if (spec.kind == TreeSpec::Kind::dict)
    for (const Json& key : Parser(member(json, "context", parser).text, file).whole().items)
      spec.keys.push_back(key.text);
  for (const Json& child : member(json, "children_spec", parser).items)
    spec.children.push_back(spec_of(child, parser, file));
  if (spec.kind == TreeSpec::Kind::dict && spec.keys.size() != spec.children.size()) parser.refuse();
  return spec;
}

}  // namespace

TreeSpec parse_tree_spec(const std::string& text, const std::string& file) {
  Parser parser(text, file);
  const Json json = parser.whole();
  // [version of the format, spec]
  if (!json.is_array || json.items.size() != 2 || json.items[0].text != "1") parser.refuse();
  return spec_of(json.items[1], parser, file);
}

std::vector<std::string> names_of_inputs(const TreeSpec& arguments, const std::string& file) {
  if (arguments.children.size() != 2) fail(FPT_ERR_FORMAT, file, " does not say what its inputs are");
  const TreeSpec& keywords = arguments.children[1];
  std::vector<std::string> names;
  const auto add = [&](const TreeSpec& input, std::string name) {
    if (input.kind != TreeSpec::Kind::leaf)
      fail(FPT_ERR_FORMAT, file, " takes a ", input.type,
           " inside a container or by name, which Fortran cannot pass: export the ", "model with tensors");
    names.push_back(std::move(name));
  };
  const auto add_entries = [&](const TreeSpec& group) {
    for (std::size_t i = 0; i < group.children.size(); ++i)
      add(group.children[i], group.kind == TreeSpec::Kind::dict ? group.keys[i] : "");
  };
  for (const TreeSpec& argument : arguments.children[0].children)
    if (argument.kind == TreeSpec::Kind::leaf)
      add(argument, "");
    else
      add_entries(argument);
  add_entries(keywords);
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(sorted.begin(), std::upper_bound(sorted.begin(), sorted.end(), ""));
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
    fail(FPT_ERR_FORMAT, file, " has two inputs called ", *twice,
         ", which Fortran cannot tell apart: export the model with ", "tensors of different names");
  return names;
}

}  // namespace fpt::direct
