// SPDX-License-Identifier: MIT
#include "plugin/training/optimizer_state.hpp"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "direct/object_arguments.hpp"
#include "ftr/plain_archive.hpp"
#include "ftr/plain_values.hpp"
#include "plugin/failure.hpp"
#include "plugin/pickle/archive_writer.hpp"
#include "plugin/scalars.hpp"
#include "plugin/tensors.hpp"

namespace fpt::direct {
namespace {

using ftr::entry_in, ftr::integer_in, ftr::items_in, ftr::logical_in, ftr::parts_in, ftr::real_in, ftr::require_plain,
    ftr::tensor_in, ftr::text_in;

struct Part {
  const char* name;
  at::Tensor Moments::* tensor;
};
constexpr Part momentum[] = {{"momentum_buffer", &Moments::first}};
constexpr Part averages[] = {
    {"exp_avg", &Moments::first}, {"exp_avg_sq", &Moments::second}, {"max_exp_avg_sq", &Moments::largest}};

bool is_adam(const OptimizerSettings& settings) noexcept { return settings.kind != 0; }

at::ArrayRef<Part> parts_of(const OptimizerSettings& settings) {
  return is_adam(settings) ? at::ArrayRef<Part>(averages) : at::ArrayRef<Part>(momentum);
}

c10::impl::GenericList new_list() { return c10::impl::GenericList(c10::AnyType::get()); }

c10::IValue group_of(const OptimizerSettings& settings) {
  auto group = new_plain_dict();
  std::vector<fpt_arg> options;
  NamedSettings named(settings);
  named.append_to(options);
  for (const fpt_arg& each : options)
    group.insert(std::string(each.name),
                 is_value(each) ? value_of(each) : c10::ivalue::Tuple::create({settings.beta1, settings.beta2}));
  return group;
}

void read_settings(const c10::IValue& group, OptimizerSettings& settings) {
  std::vector<fpt_arg> options;
  NamedSettings named(settings);
  named.append_to(options);
  double betas[2];
  for (fpt_arg& each : options) {
    const std::string name = each.name;
    const c10::IValue value = entry_in(group, name.c_str());
    if (!is_value(each)) {
      const std::vector<c10::IValue> pair = parts_in(value, 2, "betas");
      for (std::size_t i = 0; i < 2; ++i) betas[i] = real_in(pair[i], "betas");
      each = row_argument(betas, FPT_FLOAT64, 2, name);
    } else if (each.dtype == FPT_BOOL) {
      each = number_argument(logical_in(value, name.c_str()), FPT_BOOL, name);
    } else {
      each = real_argument(real_in(value, name.c_str()), name);
    }
  }
  change_options(settings, options);
}

/// The number of steps, a tensor of one element.
double steps_in(const c10::IValue& state, const std::string& name) {
  const at::Tensor counted = tensor_in(entry_in(state, "step"), "a number of steps");
  require_plain(counted.numel() == 1, "a number of steps", "single number");
  const double steps = counted.item().toDouble();
  if (!std::isfinite(steps) || steps < 0) fail(FPT_ERR_FORMAT, name, " has made ", steps, " steps");
  return steps;
}

void read_moments(const c10::IValue& state, const OptimizerSettings& settings, Moments& moments) {
  const auto entries = state.toGenericDict();
  for (const Part& part : parts_of(settings)) {
    if (!entries.contains(part.name)) continue;
    const at::Tensor read = tensor_in(entry_in(state, part.name), part.name);
    if (read.sizes() != moments.parameter.sizes() || read.scalar_type() != moments.parameter.scalar_type())
      fail_of_moment(part.name, moments.name);
    moments.*part.tensor = at::empty_like(moments.parameter, at::MemoryFormat::Preserve).detach().copy_(read);
  }
  moments.steps = is_adam(settings) ? steps_in(state, moments.name) : moments.first.defined();
  const bool is_complete = (moments.first.defined() || !(is_adam(settings) || settings.momentum != 0)) &&
                           (moments.second.defined() || !is_adam(settings)) &&
                           (moments.largest.defined() || !settings.amsgrad);
  if (moments.steps > 0 && !is_complete) fail(FPT_ERR_FORMAT, moments.name, " has made steps that left nothing behind");
}

std::unique_ptr<Optimizer> optimizer_of(const c10::IValue& value, const std::vector<NamedTensor>& parameters) {
  const std::string kind = text_in(entry_in(value, "class"), "the class");
  const std::optional<int32_t> known = kind_of_class(kind);
  if (!known) fail(FPT_ERR_FORMAT, "there is no optimizer \"", as_utf8(kind.substr(0, 200)), "\"");
  OptimizerSettings settings = default_settings(*known);
  read_settings(parts_in(entry_in(value, "param_groups"), 1, "param_groups")[0], settings);
  auto optimizer = std::make_unique<Optimizer>(settings, parameters);
  const std::vector<c10::IValue> names = items_in(entry_in(value, "names"), "names");
  const c10::IValue states = entry_in(value, "state");
  require_plain(states.isGenericDict(), "state", "dict");
  const at::NoGradGuard no_gradients;
  for (std::size_t number = 0; number < names.size(); ++number) {
    const std::string& name = text_in(names[number], "the name of a parameter");
    std::vector<Moments>& all = optimizer->moments();
    const auto moments =
        std::find_if(all.begin(), all.end(), [&name](const Moments& each) { return each.name == name; });
    if (moments == all.end()) fail_without_parameter(name);
    const auto state = states.toGenericDict().find(static_cast<int64_t>(number));
    if (state == states.toGenericDict().end()) continue;
    require_plain(state->value().isGenericDict(), "the state of a parameter", "dict");
    read_moments(state->value(), settings, *moments);
  }
  return optimizer;
}

c10::IValue value_of_state(const std::string& bytes, const std::vector<NamedTensor>& parameters) {
  if (bytes.rfind("ftn_pytorch optimizer ", 0) == 0) return value_of_text(bytes, parameters);
  return ftr::read_plain_archive(
      [&bytes](uint64_t position, void* to, std::size_t count) {
        if (position >= bytes.size()) return std::size_t{0};
        return bytes.copy(static_cast<char*>(to), count, position);
      },
      bytes.size());
}

}  // namespace

void fail_without_parameter(std::string_view name) {
  fail(FPT_ERR_FORMAT, "the model has no parameter ", as_utf8(name.substr(0, 200)), " to be trained");
}

void fail_of_moment(std::string_view moment, const std::string& parameter) {
  fail(FPT_ERR_FORMAT, moment, " of ", parameter, " is not of the type and shape of the parameter");
}

std::string bytes_of_state(const Optimizer& optimizer) {
  const OptimizerSettings& settings = optimizer.settings();
  auto value = new_plain_dict(), states = new_plain_dict();
  auto names = new_list(), numbers = new_list(), groups = new_list();
  for (const Moments& moments : optimizer.moments()) {
    const auto number = static_cast<int64_t>(names.size());
    auto state = new_plain_dict();
    for (const Part& part : parts_of(settings))
      if ((moments.*part.tensor).defined()) state.insert(part.name, moments.*part.tensor);
    if (is_adam(settings) && moments.steps > 0) state.insert("step", at::scalar_tensor(moments.steps, at::kFloat));
    names.push_back(moments.name);
    numbers.push_back(number);
    if (!state.empty()) states.insert(number, state);
  }
  c10::IValue group = group_of(settings);
  group.toGenericDict().insert("params", numbers);
  groups.push_back(std::move(group));
  value.insert("class", class_name(settings.kind));
  value.insert("names", names);
  value.insert("state", states);
  value.insert("param_groups", groups);
  std::string bytes;
  write_plain_archive(write_plain_pickle(value), [&bytes](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  });
  return bytes;
}

std::unique_ptr<Optimizer> optimizer_of_state(const std::string& bytes, const std::vector<NamedTensor>& parameters,
                                              const std::string& file) {
  const std::string context = file + " holds the state of an optimizer that cannot be read";
  try {
    return optimizer_of(value_of_state(bytes, parameters), parameters);
  } catch (const Error& error) {
    fail(FPT_ERR_FORMAT, context, ": ", error.text());
  } catch (const ftr::Refusal& refusal) {
    fail(FPT_ERR_FORMAT, context, ": ", refusal.what());
  } catch (...) {
    rethrow_as(FPT_ERR_FORMAT, context);
  }
}

}  // namespace fpt::direct
