// SPDX-License-Identifier: MIT
/// How a package of torch.export nests its inputs and results: the text that torch.utils._pytree.treespec_dumps writes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace fpt::direct {

/// One node; a single value has no type.
struct TreeSpec {
  std::string type;               ///< as Python calls it
  std::vector<std::string> keys;  ///< of a dictionary, in the order of the children
  std::vector<TreeSpec> children;

  bool is_value() const noexcept { return type.empty(); }
  bool is_dictionary() const {
    const std::string end = type.substr(type.size() - std::min<std::size_t>(type.size(), 4));
    return end == "dict" || end == "Dict";
  }
};

/// FPT_ERR_FORMAT for a text that cannot be read. `file` names it in the text of the failure.
TreeSpec parse_tree_spec(const std::string& text, const std::string& file);

/// Names of all inputs in a row, from the tree of (arguments, keyword arguments); empty for an input that has none. The
/// entries of a dictionary that is an argument are inputs of their names, those of a list or tuple inputs without
/// names, as for runners/models/trees.py. FPT_ERR_FORMAT for what Fortran cannot pass.
std::vector<std::string> names_of_inputs(const TreeSpec& arguments, const std::string& file);

}  // namespace fpt::direct
