// SPDX-License-Identifier: MIT
#include "calls/results.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "arrays/fit.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

CheckedCopy copy_for(Answer& answer, int32_t index, const fpt_arg& output, const ResultOptions& reading,
                     const char* label) {
  const Value value = answer.value(index);
  if (const auto* scalar = std::get_if<Scalar>(&value.content)) return fit_scalar(*scalar, output, label);
  const auto fit = [&](const Array& array) {
    return fit_array(array, value.type, output, reading.same_layout, reading.cast, label);
  };
  const Array& array = *value.array();
  const bool goes_to_host = output.dtype == FPT_TEXT || !is_device_memory(output.data);
  if (is_half(array.dtype) && goes_to_host) return fit(answer.convertible(index));
  CheckedCopy copy = fit(array);
  if (array.device.is_host() || !goes_to_host) return copy;
  // what torch can copy straight into the variable
  const bool is_plain = copy.source.dtype == copy.target.dtype && !has_negative_stride(copy.target) &&
                        !is_misaligned(copy.target.data, copy.target.dtype);
  if (!is_plain) return fit(answer.on_host(index));
  return copy;
}

/// @param places  of the results that the copies are of
void run(Answer& answer, std::vector<CheckedCopy> steps, const std::vector<int32_t>& places, bool same_layout) {
  std::vector<Array> aside(steps.size());  // sources on a device that another copy overwrites
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto spoils = [&](const CheckedCopy& other) { return other.spoils(steps[i]); };
    if (steps[i].is_on_host() || std::none_of(steps.begin(), steps.end(), spoils)) continue;
    const Array seen = answer.on_host(places[i]);
    aside[i] = same_layout ? seen : reversed(seen);
  }
  std::vector<CheckedCopy> on_host, across;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (aside[i].data) steps[i].source = aside[i];
    (steps[i].is_on_host() ? on_host : across).push_back(std::move(steps[i]));
  }
  run_all(on_host);
  for (CheckedCopy& copy : across) {
    if (copy.is_number) copy.source.data = copy.number;
    if (!copy.is_in_place()) answer.copy(copy.source, copy.target);
  }
}

/// Whether a result, which has to be an array, is handed out as a copy on the host.
bool comes_to_host(const Value& value, const ResultOptions& reading) {
  return reading.brings_to_host && !value.array()->device.is_host();
}

/// An array; FPT_ERR_RESULT_TYPE for another result.
Value array_at(Answer& answer, int32_t index, const ResultNames& names) {
  Value value = answer.value(index - 1);
  if (value.array()) return value;
  fail(FPT_ERR_RESULT_TYPE, names.label(index), " is of type ", value.type, " and no array: use scalar");
}

}  // namespace

void Outputs::describe() {
  described_.assign(args_.begin(), args_.end());
  for (fpt_arg& output : described_)
    if (is_tensor_handle(output.handle)) output = tensors_.emplace_back(output).described();
  args_.first = described_.data();
}

void Outputs::refuse(const fpt_arg& arg, const std::string& reason) const {
  const auto index = static_cast<int32_t>(&arg - args_.first);
  fail(FPT_ERR_DEVICE, argument_label("output", index, arg), " is in memory of ", device_name(device_of(arg.data)),
       ": ", reason);
}

void deliver(Answer& answer, const CallName& call, const ResultOptions& reading, Args outputs) {
  if (outputs.count == 1 && answer.copy_at_once(outputs[0], reading.same_layout)) return;
  const std::vector<int32_t> places = pair_outputs(call, answer.list(), outputs);
  std::vector<CheckedCopy> steps;
  for (int32_t i = 0; i < outputs.count; ++i) try {
      steps.push_back(copy_for(answer, places[static_cast<std::size_t>(i)], outputs[i], reading, "the result"));
    } catch (const Error& error) {
      fail(error.status(), call, ", ", argument_label("output", i, outputs[i]), ": ", error.text());
    }
  run(answer, std::move(steps), places, reading.same_layout);
}

TensorPtr single_tensor(Answer& answer, const CallName& call, const ResultOptions& reading) {
  const int32_t count = answer.list().count;
  if (count != 1)
    fail(FPT_ERR_RESULT_COUNT, call, " returned ", count,
         " results, but one tensor is expected: use a results argument, or several outputs");
  const Value value = answer.value(0);
  if (!value.array()) fail(FPT_ERR_RESULT_TYPE, call, " returned a ", value.type, ", but a tensor is expected");
  return answer.tensor(0, reading.same_layout, comes_to_host(value, reading));
}

Results::Results(std::shared_ptr<Answer> answer, const CallName& call, const ResultOptions& reading)
    : answer_(std::move(answer)), reading_(reading) {
  const ResultList list = answer_->list();
  std::vector<std::string> names(static_cast<std::size_t>(list.count));
  for (std::size_t i = 0; i < list.names.size(); ++i) {
    if (!list.names[i] && !list.is_tuple) fail(FPT_ERR_RESULT_NAME, call, " returned a result whose name is no UTF-8");
    names[i] = list.names[i] ? list.names[i] : "";
  }
  names_ = ResultNames(concat(call), std::move(names));
}

TensorPtr Results::tensor(int32_t index) {
  names_.place(index);
  const Value value = array_at(*answer_, index, names_);
  return answer_->tensor(index - 1, reading_.same_layout, comes_to_host(value, reading_));
}

Array Results::memory(int32_t index, int32_t dtype, int32_t rank) {
  names_.place(index);
  const Value value = array_at(*answer_, index, names_);
  const Array seen = comes_to_host(value, reading_) ? answer_->on_host(index - 1) : *value.array();
  const Array array = reading_.same_layout ? seen : reversed(seen);
  require_pointer(array, dtype, rank, names_.label(index));
  return array;
}

void Results::copy_to(int32_t index, const fpt_arg& output, bool cast) {
  names_.place(index);
  ResultOptions reading = reading_;
  reading.cast = cast;
  fpt_arg described = output;
  const Outputs outputs({&described, 1});
  std::vector<CheckedCopy> steps;
  steps.push_back(copy_for(*answer_, index - 1, outputs.get()[0], reading, names_.label(index).c_str()));
  run(*answer_, std::move(steps), {index - 1}, reading.same_layout);
  outputs.written();
  if (!outputs.device().is_host()) answer_->wait(outputs.device());
}

std::string_view Results::text(int32_t index) {
  names_.place(index);
  const Value value = answer_->value(index - 1);
  const auto* scalar = std::get_if<Scalar>(&value.content);
  const auto* text = scalar ? std::get_if<std::string_view>(scalar) : nullptr;
  if (!text) fail(FPT_ERR_DTYPE, names_.label(index), " is of type ", value.type, " and no string");
  return *text;
}

void hand_over(const std::shared_ptr<Answer>& answer, const CallName& call, const ResultOptions& reading,
               const Outputs& outputs, const Targets& targets) {
  TensorPtr tensor = targets.tensor ? single_tensor(*answer, call, reading) : nullptr;
  std::optional<Results> results;
  if (targets.results) results.emplace(answer, call, reading);
  if (outputs.get().count > 0) {
    deliver(*answer, call, reading, outputs.get());
    outputs.written();
    if (!outputs.device().is_host()) answer->wait(outputs.device());
  }
  if (tensor) *targets.tensor = std::move(tensor);
  if (results) store_results(targets.results, std::move(*results));
}

ResultsTable& results_table() {
  static ResultsTable& table = *new ResultsTable("an object with results", "a function with it as results argument");
  return table;
}

void store_results(int64_t* handle, Results results) {
  if (Results* known = results_table().find(*handle))
    std::swap(*known, results);  // the old ones end here
  else
    *handle = results_table().insert(std::make_unique<Results>(std::move(results)));
}

}  // namespace fpt
