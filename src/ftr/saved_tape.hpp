// SPDX-License-Identifier: MIT
/// One recording of a file: what it takes, its calls, and what comes out. docs/ftr-format.md has the format.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ftr/tape.hpp"

namespace ftr {

/// One argument of a function.
struct SavedInput {
  std::string name;  ///< of the parameter; empty if it has none
  int32_t slot = -1;
  at::ScalarType dtype = at::kFloat;
  std::vector<Size> sizes, strides;  ///< strides in elements
  c10::IValue constant;              ///< of an argument that is no tensor
  bool is_tensor = false;

  /// "x float32 (B, 16)"
  std::string described() const;
};

/// A number that a run is given.
struct SavedNumber {
  std::size_t setting = 0;  ///< place among the numbers of the file
  at::Tensor counter;       ///< in place of a setting
  double ahead = 0;         ///< what is added to that

  double value(const std::vector<double>& settings) const {
    return counter.defined() ? counter.item<double>() + ahead : settings[setting];
  }
};

/// A gradient, an array of the state, that a recording reads or adds to, or that must not be there yet.
struct SavedGradient {
  std::string name;
  at::Tensor tensor;  ///< a constant, which that array must be; undefined: there must be none

  bool holds(const std::map<std::string, at::Tensor>& arrays) const;
};

/// A container, a tensor or a constant of a result.
struct SavedNode {
  enum class Kind : uint8_t { tensor, value, tuple, list, dict, named };
  Kind kind = Kind::value;
  std::size_t tensor = 0;  ///< place among the results
  c10::IValue value;
  std::vector<std::string> names;
  std::vector<SavedNode> items;
};

/// Code of a compiler, which does what the operators of a recording do.
struct SavedCode {
  std::string model;  ///< its name in the archive
  CodeParts parts;
};

/// How the parts of a file are understood.
struct SavedContext {
  std::string where;                        ///< "ftn_pytorch_train of closure.ftr", for texts
  const std::vector<std::string>& numbers;  ///< names of the numbers of the file
  at::Device device;                        ///< takes the place of each device in the file
  /// What runs an operator of this library; its arguments on the stack become its results.
  std::function<void(c10::Stack&)> all_reduce_mean;
};

struct SavedTape {
  bool has_batch = false;
  int64_t least = 1;  ///< the smallest batch
  std::vector<SavedInput> inputs;
  Tape tape;
  std::vector<int32_t> results;
  SavedNode result;
  std::vector<SavedNumber> numbers;
  std::vector<Branch> branches;
  std::vector<SavedGradient> before;
  std::vector<std::pair<std::string, int32_t>> gradients;  ///< array that becomes the tensor of a slot; -1: it goes
  std::vector<std::size_t> written_inputs;                 ///< places among the inputs
  bool writes = false;
  std::optional<SavedCode> code;
  std::vector<at::Tensor> tensors;  ///< that are there in every run
  std::vector<std::string> operators;

  /// "x float32 (B, 16), target float32 (B, 4)"
  std::string described() const;
};

/// A recording of a file. Nothing of it is trusted: Why::format says what is wrong.
[[nodiscard]] SavedTape read_tape(const c10::IValue& described, const SavedContext& context);

}  // namespace ftr
