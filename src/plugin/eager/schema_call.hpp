// SPDX-License-Identifier: MIT
/// Calls of operators by their name and the arguments alone: the overload is found by the schemas of torch.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include "plugin/torch.hpp"

namespace fpt::direct {

/// Thrown where only Python can say what a call means, before anything is done.
struct NotHere {};

/// Arguments of a call: tensors, numbers, texts and lists of integers. Those with a name come last.
struct GivenArguments {
  std::vector<c10::IValue> values;
  std::vector<std::string_view> names;  ///< as many; empty for arguments by position

  void add(c10::IValue value, std::string_view name = {}) {
    values.push_back(std::move(value));
    names.push_back(name);
  }
};

/// By what an operator is called: its schema; a function of Python, whose parser makes 0 of constants of C++ such as
/// at::Reduction::Mean; or a method of its first tensor.
enum class Reading : uint8_t { schema, function, method };

/// The overloads of an operator, and which of them calls of each form have.
class Operators {
 public:
  /// @param name  "aten::sum"
  Operators(const std::string& name, Reading reading);
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  bool empty() const noexcept { return overloads_.empty(); }
  /// The result; a tuple of several, with names where the schema has them. NotHere where no overload takes the
  /// arguments. Integer tensors of rank 1 become lists where none takes tensors.
  c10::IValue call(const GivenArguments& given);

 private:
  enum class Form : uint8_t { as_given, wrapped, real, list, repeated, dtype, device };
  struct Step {
    int32_t index = -1;  // of what is given; -1: `value`
    Form form = Form::as_given;
    int32_t count = 0;  // of a repeated number
    c10::IValue value;
  };
  struct Plan {
    const c10::OperatorHandle* handle = nullptr;
    std::vector<Step> steps;
    c10::TupleTypePtr results;  // null for one result, or none
    int64_t cost = 0;
  };

  const Plan& plan_for(const GivenArguments& given);
  Plan planned(const GivenArguments& given, const std::string& tags) const;
  bool matches(const c10::FunctionSchema& schema, const GivenArguments& given, const std::string& tags, bool lists,
               Plan& plan) const;
  std::optional<Form> form_for(const c10::Argument& declared, char tag, bool lists, std::string_view name) const;

  const Reading reading_;
  std::vector<c10::OperatorHandle> overloads_;
  bool takes_numbers_ = false;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Plan> plans_;
};

/// The overloads of an operator, for ever.
Operators& operators_named(const std::string& name, Reading reading);

/// The elements of an integer tensor of rank 1.
[[nodiscard]] std::vector<int64_t> numbers_of(const at::Tensor& tensor);

}  // namespace fpt::direct
