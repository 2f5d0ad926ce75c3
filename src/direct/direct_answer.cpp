// SPDX-License-Identifier: MIT
#include "direct/direct_answer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "arrays/fit.hpp"
#include "base/cuda_context.hpp"
#include "direct/direct_plugin.hpp"
#include "direct/direct_tensor.hpp"
#include "direct/direct_value.hpp"

namespace fpt {
namespace {

Scalar scalar_of_value(const fpt_direct_value& value) {
  if (value.kind == FPT_DIRECT_TEXT)
    return std::string_view(static_cast<const char*>(value.data), static_cast<std::size_t>(value.length));
  const auto read = [&value](auto number) {
    std::memcpy(&number, value.number, sizeof number);
    return number;
  };
  if (value.dtype == FPT_BOOL) return value.number[0] != 0;
  if (value.dtype == FPT_INT64) return read(int64_t{});
  if (value.dtype == FPT_FLOAT64) return read(double{});
  return read(std::complex<double>{});
}

}  // namespace

DirectAnswer::~DirectAnswer() {
  if (!answer_.owner) return;
  const CallerContext gpu;  // results may be let go outside of a call
  direct_plugin().release(answer_.owner);
}

void DirectAnswer::keep_if_shared(const Array& input, std::shared_ptr<void> owner) {
  const auto is_shared = [&input](const fpt_direct_value& value) {
    return value.kind == FPT_DIRECT_TENSOR && overlap(array_of_value(value), input);
  };
  if (std::any_of(answer_.values, answer_.values + answer_.count, is_shared))
    kept_.push_back({input, std::move(owner)});
}

ResultList DirectAnswer::list() const {
  ResultList list{answer_.count, {}, answer_.is_tuple != 0};
  if (answer_.count > 0 && answer_.values[0].name)
    for (int32_t i = 0; i < answer_.count; ++i) list.names.push_back(answer_.values[i].name);
  return list;
}

Value DirectAnswer::value(int32_t index) {
  const fpt_direct_value& value = answer_.values[index];
  if (value.kind == FPT_DIRECT_TENSOR) return {array_of_value(value), "Tensor"};
  const Scalar scalar = scalar_of_value(value);
  return {scalar, type_name(scalar)};
}

Array DirectAnswer::copy_of(int32_t index, bool widened) {
  const auto known = copies_.find({index, widened});
  if (known != copies_.end()) return known->second;
  fpt_direct_value copy{};
  require_direct(direct_plugin().to_host(&answer_, index, widened, &copy));
  return copies_[{index, widened}] = array_of_value(copy);
}

Array DirectAnswer::on_host(int32_t index) {
  const fpt_direct_value& value = answer_.values[index];
  return is_on_host(value) ? array_of_value(value) : copy_of(index, false);
}

Array DirectAnswer::convertible(int32_t index) {
  return is_half(answer_.values[index].dtype) ? copy_of(index, true) : on_host(index);
}

TensorPtr DirectAnswer::tensor(int32_t index, bool same_layout, bool on_host) {
  const Array array = on_host ? this->on_host(index) : array_of_value(answer_.values[index]);
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& input) { return overlap(input.memory, array); });
  // the owner itself: a result that becomes an input again and again would be a chain of answers without end
  return Tensor::of_memory(array, kept != kept_.end() ? kept->owner : shared_from_this(), same_layout);
}

void DirectAnswer::copy(const Array& source, const Array& target) {
  fpt_direct_value from{}, to{};
  set_memory(from, source);
  set_memory(to, target);
  require_direct(direct_plugin().copy(&from, &to));
}

void DirectAnswer::wait(Device device) { require_direct(direct_plugin().wait(device.type, device.index)); }

bool DirectAnswer::copy_plain_tensor(const fpt_arg& output, bool same_layout) const {
  if (answer_.count != 1) return false;
  const fpt_direct_value& value = answer_.values[0];
  if ((value.name && !answer_.is_tuple) || output.name[0] || value.kind != FPT_DIRECT_TENSOR || !is_on_host(value))
    return false;
  const Array array = array_of_value(value);
  return copy_plainly(same_layout ? array : reversed(array), output);
}

TensorPtr RecordedAnswer::tensor(int32_t index, bool same_layout, bool on_host) {
  fpt_direct_tensor* made = nullptr;
  require_direct(direct_plugin().tensors.tensor_of_answer(raw(), index, on_host, &made));
  return shared_tensor_of_raw(made, same_layout);
}

void hand_out(DirectAnswer& answer, const CallName& call, const ResultOptions& reading, const Outputs& outputs) {
  const Args wanted = outputs.get();
  if (wanted.count == 0 || (wanted.count == 1 && answer.copy_plain_tensor(wanted[0], reading.same_layout))) return;
  deliver(answer, call, reading, wanted);
  if (!outputs.device().is_host()) answer.wait(outputs.device());
}

void hand_over(const std::shared_ptr<DirectAnswer>& answer, const CallName& call, const ResultOptions& reading,
               const Outputs& outputs, const Targets& targets) {
  // what may be refused comes before the first copy
  TensorPtr tensor = targets.tensor ? single_tensor(*answer, call, reading) : nullptr;
  std::optional<Results> results;
  if (targets.results) results.emplace(answer, call, reading);
  hand_out(*answer, call, reading, outputs);
  if (tensor) *targets.tensor = std::move(tensor);
  if (results) store_results(targets.results, std::move(*results));
}

}  // namespace fpt
