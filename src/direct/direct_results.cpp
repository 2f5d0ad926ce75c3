// SPDX-License-Identifier: MIT
#include "direct/direct_results.hpp"

#include <cstring>

#include "direct/direct_plugin.hpp"
#include "direct/direct_value.hpp"
#include "base/error.hpp"
#include "arrays/fit.hpp"
#include "base/handle.hpp"

namespace fpt {
namespace {

using Table = HandleTable<DirectResults, HandleKind::direct_results>;

Table& table() {
  static Table& instance = *new Table("an object with results", "a function with it as results argument");
  return instance;
}

/// The core converts every type but these.
bool is_half(int32_t dtype) noexcept { return dtype == FPT_FLOAT16 || dtype == FPT_BFLOAT16; }

const char* type_name(const fpt_direct_value& value) noexcept {
  if (value.kind == FPT_DIRECT_TENSOR) return "tensor";
  if (value.kind == FPT_DIRECT_TEXT) return "str";
  return value.dtype == FPT_BOOL ? "bool" : value.dtype == FPT_INT64 ? "int" : value.dtype == FPT_FLOAT64 ? "float" : "complex";
}

/// A checked copy; one from a device goes straight into the variable where the types agree.
struct Step {
  CheckedCopy copy;
  Storage aside;
  int32_t index = 0;
  bool from_device = false;
};

Step step_for(DirectAnswer& answer, int32_t index, const fpt_arg& output, bool same_layout, bool casts, const char* label) {
  Step step{copy_into(output, label), {}, index, false};
  fpt_direct_value& value = answer->values[index];
  if (value.kind == FPT_DIRECT_TEXT) {
    fit_text(step.copy, {static_cast<const char*>(value.data), static_cast<std::size_t>(value.length)}, output, label);
    return step;
  }
  fit_variable(step.copy, output, type_name(value), label);
  if (value.kind == FPT_DIRECT_NUMBER) {
    fit_number(step.copy, value.dtype, value.number, type_name(value), label);
    return step;
  }
  if (is_half(value.dtype)) require_direct(direct_plugin().to_host(answer.get(), index));
  const Array seen = array_of_value(value);
  fit_array(step.copy, same_layout ? seen : reversed(seen), same_layout, casts, label);
  step.from_device = !value.on_host && step.copy.source.dtype == step.copy.target.dtype &&
                     !has_negative_stride(step.copy.target);
  if (!value.on_host && !step.from_device) step.copy.source = answer.array(index);
  return step;
}

/// Pairs results with outputs, checks all of them, then copies.
class Delivery {
 public:
  Delivery(DirectAnswer& answer, const std::string& what, bool same_layout, bool casts, fpt_arg* outputs, int32_t count)
      : answer_(answer), what_(what), same_layout_(same_layout), casts_(casts), outputs_(outputs), count_(count) {}

  void pair() {
    ResultList results{answer_->count, {}, answer_->is_tuple != 0};
    if (answer_->count > 0 && answer_->values[0].name)
      for (int32_t i = 0; i < answer_->count; ++i) results.names.push_back(answer_->values[i].name);
    const std::vector<int32_t> places = pair_outputs({what_, {}}, results, outputs_, count_);
    for (int32_t i = 0; i < count_; ++i) add(places[static_cast<std::size_t>(i)], i);
  }

  void run() {
    for (std::size_t i = 0; i < steps_.size(); ++i)
      for (std::size_t j = 0; j < steps_.size() && !steps_[i].aside; ++j)
        if (!steps_[i].from_device && steps_[j].copy.spoils(steps_[i].copy))
          steps_[i].aside = steps_[i].copy.set_source_aside();
    for (Step& step : steps_) {
      if (!step.from_device) {
        step.copy.run();
        continue;
      }
      fpt_direct_value target{};
      set_memory(target, step.copy.target);
      require_direct(direct_plugin().copy_to(answer_.get(), step.index, &target));
    }
  }

 private:
  void add(int32_t index, int32_t output) {
    try {
      steps_.push_back(step_for(answer_, index, outputs_[output], same_layout_, casts_, "the result"));
    } catch (const Error& error) {
      fail(error.status(), what_, ", ", argument_label("output", output, outputs_[output]), ": ", error.text());
    }
  }

  DirectAnswer& answer_;
  const std::string& what_;
  bool same_layout_, casts_;
  fpt_arg* outputs_;
  int32_t count_;
  std::vector<Step> steps_;
};

/// The most frequent case without ceremony, as for the results of scripts.
bool deliver_plainly(const DirectAnswer& answer, const fpt_arg& output) {
  if (answer->count != 1) return false;
  const fpt_direct_value& value = answer->values[0];
  if ((value.name && !answer->is_tuple) || output.name[0] || value.kind != FPT_DIRECT_TENSOR || !value.on_host) return false;
  return copy_plainly(array_of_value(value), output);
}

}  // namespace

DirectAnswer::~DirectAnswer() {
  if (answer_.owner) direct_plugin().release(answer_.owner);
}

Array DirectAnswer::array(int32_t index) {
  if (!answer_.values[index].on_host) require_direct(direct_plugin().to_host(&answer_, index));
  return array_of_value(answer_.values[index]);
}

void deliver_direct(DirectAnswer& answer, const std::string& what, bool same_layout, bool casts, fpt_arg* outputs,
                    int32_t count) {
  if (count == 1 && deliver_plainly(answer, *outputs)) return;
  Delivery delivery(answer, what, same_layout, casts, outputs, count);
  delivery.pair();
  delivery.run();
}

DirectResults::DirectResults(std::shared_ptr<DirectAnswer> answer, std::string function, bool same_layout)
    : answer_(std::move(answer)), same_layout_(same_layout) {
  std::vector<std::string> names;
  for (int32_t i = 0; i < (*answer_)->count; ++i) {
    const char* name = (*answer_)->values[i].name;
    names.emplace_back(name ? name : "");
  }
  names_ = ResultNames(std::move(function), std::move(names));
}

fpt_direct_value& DirectResults::value(int32_t index) const { return (*answer_)->values[names_.place(index)]; }

Array DirectResults::array_at(int32_t index) {
  const fpt_direct_value& found = value(index);
  if (found.kind != FPT_DIRECT_TENSOR)
    fail(FPT_ERR_RESULT_TYPE, names_.label(index), " is a ", type_name(found), " and no array: use scalar");
  return answer_->array(index - 1);
}

Tensor DirectResults::tensor(int32_t index) { return Tensor::of_owned(array_at(index), answer_, same_layout_); }

void DirectResults::memory(int32_t index, int32_t dtype, int32_t rank, void** data, int64_t* extents, int64_t* strides) {
  const Array array = array_at(index);
  require_memory(array, dtype, rank, names_.label(index));
  *data = array.data;
  std::memcpy(extents, array.extents, sizeof(int64_t) * static_cast<std::size_t>(rank));
  std::memcpy(strides, array.strides, sizeof(int64_t) * static_cast<std::size_t>(rank));
}

void DirectResults::copy_to(int32_t index, const fpt_arg& output, bool cast) {
  value(index);
  fpt_arg described = described_output(output);
  Step step = step_for(*answer_, index - 1, described, same_layout_, cast, names_.label(index).c_str());
  if (step.from_device) step.copy.source = answer_->array(index - 1);
  step.copy.run();
}

void DirectResults::text(int32_t index, const char** text, int64_t* length) const {
  const fpt_direct_value& found = value(index);
  if (found.kind != FPT_DIRECT_TEXT) fail(FPT_ERR_DTYPE, names_.label(index), " is a ", type_name(found), " and no text");
  *text = static_cast<const char*>(found.data);
  *length = found.length;
}

Tensor DirectResults::single(std::shared_ptr<DirectAnswer> answer, const std::string& function, bool same_layout) {
  const int32_t count = (*answer)->count;
  if (count != 1)
    fail(FPT_ERR_RESULT_COUNT, function, " returned ", count,
         " results, but one tensor is expected: use a results argument, or several outputs");
  if ((*answer)->values[0].kind != FPT_DIRECT_TENSOR)
    fail(FPT_ERR_RESULT_TYPE, function, " returned a ", type_name((*answer)->values[0]), ", but a tensor is expected");
  const Array array = answer->array(0);
  return Tensor::of_owned(array, std::move(answer), same_layout);
}

bool is_direct_results(int64_t handle) noexcept {
  return handle >> 60 == static_cast<int64_t>(HandleKind::direct_results);
}

DirectResults& direct_results_at(int64_t handle) { return table().at(handle); }

void store_direct_results(int64_t* handle, DirectResults results) {
  if (DirectResults* known = table().find(*handle))
    std::swap(*known, results);
  else
    *handle = table().insert(std::make_unique<DirectResults>(std::move(results)));
}

void free_direct_results(int64_t handle) noexcept { table().remove(handle); }

}  // namespace fpt
