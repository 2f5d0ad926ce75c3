// SPDX-License-Identifier: MIT
#include "calls/results.hpp"

#include <algorithm>
#include <utility>

#include "arrays/fit.hpp"
#include "base/error.hpp"

namespace fpt {
namespace {

/// A checked copy of one result; one from a device goes straight into the variable where the types agree.
struct Step {
  CheckedCopy copy;
  int32_t from_device = -1;  // index of the result
};

Step step_for(Answer& answer, int32_t index, const fpt_arg& output, const Reading& reading, const char* label) {
  Value value = answer.value(index);
  if (const auto* scalar = std::get_if<Scalar>(&value.content)) return {fit_scalar(*scalar, output, label)};
  if (is_half(value.array()->dtype)) {
    answer.bring_to_host(index);
    value = answer.value(index);
  }
  Step step{fit_array(*value.array(), value.type, output, reading.same_layout, reading.cast, label)};
  if (value.array()->device.is_host()) return step;
  if (step.copy.source.dtype == step.copy.target.dtype && !has_negative_stride(step.copy.target)) {
    step.from_device = index;
    return step;
  }
  answer.bring_to_host(index);
  return {fit_array(*answer.value(index).array(), value.type, output, reading.same_layout, reading.cast, label)};
}

void run(Answer& answer, std::vector<Step> steps, bool same_layout) {
  std::vector<CheckedCopy> copies;
  std::vector<Step> from_device;
  for (Step& step : steps)
    if (step.from_device < 0)
      copies.push_back(std::move(step.copy));
    else
      from_device.push_back(std::move(step));
  run_all(copies);
  for (Step& step : from_device) {
    const Array target = same_layout ? step.copy.target : reversed(step.copy.target);
    if (answer.copy_from_device(step.from_device, target)) continue;
    answer.bring_to_host(step.from_device);
    const Array source = *answer.value(step.from_device).array();
    step.copy.source = same_layout ? source : reversed(source);
    step.copy.run();
  }
}

/// An array; FPT_ERR_RESULT_TYPE for another result.
Array array_at(Answer& answer, int32_t index, const ResultNames& names) {
  const Value value = answer.value(index - 1);
  if (const Array* array = value.array()) return *array;
  fail(FPT_ERR_RESULT_TYPE, names.label(index), " is of type ", value.type, " and no array: use scalar");
}

}  // namespace

void Outputs::describe() {
  described_.assign(args_.begin(), args_.end());
  for (fpt_arg& output : described_) output = described_output(output);
  args_.first = described_.data();
}

void deliver(Answer& answer, const CallName& call, const Reading& reading, Args outputs) {
  const std::vector<int32_t> places = pair_outputs(call, answer.list(), outputs);
  std::vector<Step> steps;
  for (int32_t i = 0; i < outputs.count; ++i) try {
      steps.push_back(step_for(answer, places[static_cast<std::size_t>(i)], outputs[i], reading, "the result"));
    } catch (const Error& error) {
      fail(error.status(), call, ", ", argument_label("output", i, outputs[i]), ": ", error.text());
    }
  run(answer, std::move(steps), reading.same_layout);
}

Tensor single_tensor(Answer& answer, const CallName& call, const Reading& reading) {
  const int32_t count = answer.list().count;
  if (count != 1)
    fail(FPT_ERR_RESULT_COUNT, call, " returned ", count,
         " results, but one tensor is expected: use a results argument, or several outputs");
  const Value value = answer.value(0);
  const Array* array = value.array();
  if (!array) fail(FPT_ERR_RESULT_TYPE, call, " returned a ", value.type, ", but a tensor is expected");
  if (reading.brings_to_host && !array->device.is_host()) answer.bring_to_host(0);
  return answer.tensor(0, reading.same_layout);
}

Results::Results(std::shared_ptr<Answer> answer, const CallName& call, const Reading& reading)
    : answer_(std::move(answer)), reading_(reading) {
  const ResultList list = answer_->list();
  std::vector<std::string> names(static_cast<std::size_t>(list.count));
  for (std::size_t i = 0; i < list.names.size(); ++i) {
    if (!list.names[i] && !list.is_tuple) fail(FPT_ERR_RESULT_NAME, call, " returned a result whose name is no UTF-8");
    names[i] = list.names[i] ? list.names[i] : "";
  }
  names_ = ResultNames(concat(call), std::move(names));
  for (int32_t i = 0; reading.brings_to_host && i < list.count; ++i) {
    const Value value = answer_->value(i);
    if (value.array() && !value.array()->device.is_host()) answer_->bring_to_host(i);
  }
}

Tensor Results::tensor(int32_t index) {
  names_.place(index);
  array_at(*answer_, index, names_);
  return answer_->tensor(index - 1, reading_.same_layout);
}

Array Results::memory(int32_t index, int32_t dtype, int32_t rank) {
  names_.place(index);
  const Array seen = array_at(*answer_, index, names_);
  const Array array = reading_.same_layout ? seen : reversed(seen);
  require_memory(array, dtype, rank, names_.label(index));
  return array;
}

void Results::copy_to(int32_t index, const fpt_arg& output, bool cast) {
  names_.place(index);
  Reading reading = reading_;
  reading.cast = cast;
  std::vector<Step> steps;
  steps.push_back(step_for(*answer_, index - 1, described_output(output), reading, names_.label(index).c_str()));
  run(*answer_, std::move(steps), reading.same_layout);
}

std::string_view Results::text(int32_t index) {
  names_.place(index);
  const Value value = answer_->value(index - 1);
  const auto* scalar = std::get_if<Scalar>(&value.content);
  const auto* text = scalar ? std::get_if<std::string_view>(scalar) : nullptr;
  if (!text) fail(FPT_ERR_DTYPE, names_.label(index), " is of type ", value.type, " and no string");
  return *text;
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
