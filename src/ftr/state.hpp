// SPDX-License-Identifier: MIT
/// What training changes of a saved recording: arrays, numbers of optimizers, and torch's generator.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ftr/content.hpp"

namespace ftr {

class State {
 public:
  /// Takes over what a file holds.
  /// @param device  where all tensors of the file live, those of its tapes, too; none for the host
  State(Content content, const std::string& file, const std::optional<at::Device>& device);

  /// The generator of the host, which is that of the process, goes on from the state in the file. Why::format.
  void start_generator() const;

  /// What was read last, without its arrays. The tensors of its tapes share the memory of the arrays.
  const Content& content() const noexcept { return content_; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  const std::vector<double>& numbers() const noexcept { return numbers_; }
  const std::map<std::string, at::Tensor>& arrays() const noexcept { return arrays_; }

  /// A number by its name, or by an end of that which no other has; Why::argument with the names there are.
  double number(const std::string& name) const { return numbers_[place_of(name)]; }
  /// Why::argument for zero and what is no number: a step with zero may call other operators.
  void set_number(const std::string& name, double value);

  /// An array becomes another tensor; an undefined one takes it away.
  void set_array(const std::string& name, at::Tensor tensor);

  /// Go on from what another file holds. What the tapes use has to be there and to fit, else Why::format, and
  /// nothing is changed; all else is taken over.
  /// @param arrays  those that the tapes use  @param numbers  places of the numbers that they use
  void restore(Content content, const std::string& path, const std::map<std::string, at::Tensor>& arrays,
               const std::set<std::size_t>& numbers);

 private:
  std::size_t place_of(const std::string& name) const;

  std::string file_;
  std::optional<at::Device> device_;
  Content content_;
  std::map<std::string, at::Tensor> arrays_;
  std::vector<std::string> names_;
  std::vector<double> numbers_;
};

}  // namespace ftr
