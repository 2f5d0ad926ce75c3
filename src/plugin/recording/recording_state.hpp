// SPDX-License-Identifier: MIT
/// What training changes of a saved recording: arrays, numbers of optimizers, the generator; and its files.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugin/recording/archive_file.hpp"

namespace fpt::direct {

class RecordingState {
 public:
  /// Takes over what a file holds.
  /// @param device  where all tensors of the file live, those of its tapes, too; none for the host
  RecordingState(ArchiveContent content, const std::string& file, const std::optional<at::Device>& device);

  /// The generator of the host, which is that of the process, goes on from the state in the file. FPT_ERR_FORMAT.
  void start_generator() const;

  /// The dict of the tapes, with tensors that share the memory of the arrays.
  const c10::IValue& recording() const noexcept { return content_.recording; }
  const std::vector<std::string>& names() const noexcept { return names_; }
  const std::vector<double>& numbers() const noexcept { return numbers_; }

  /// A number by its name, or by an end of that which no other has; FPT_ERR_ARGUMENT with the names there are.
  double number(const std::string& name) const { return numbers_[place_of(name)]; }
  /// FPT_ERR_ARGUMENT for zero and what is no number: a step with zero may call other operators.
  void set_number(const std::string& name, double value);

  /// An array becomes another tensor; an undefined one takes it away.
  void set_array(const std::string& name, at::Tensor tensor);

  /// The present state as a file holds it. @param step  none for a file that is no checkpoint of a folder
  ArchiveContent content(bool with_tapes, std::optional<int64_t> step) const;

  /// Go on from what another file holds. What the tapes use has to be there and to fit, else FPT_ERR_FORMAT, and
  /// nothing is changed; all else is taken over.
  /// @param arrays  those that the tapes use  @param numbers  places of the numbers that they use
  void restore(ArchiveContent content, const std::string& path, const std::map<std::string, at::Tensor>& arrays,
               const std::set<std::size_t>& numbers);

  const std::map<std::string, at::Tensor>& arrays() const noexcept { return arrays_; }

 private:
  std::size_t place_of(const std::string& name) const;
  void take_numbers(const ArchiveContent& content);

  std::string file_;
  std::optional<at::Device> device_;
  ArchiveContent content_;
  std::map<std::string, at::Tensor> arrays_;
  std::vector<std::string> names_;
  std::vector<double> numbers_;
};

}  // namespace fpt::direct
