// SPDX-License-Identifier: MIT
#include "plugin/eager/functions.hpp"

#include <ATen/PythonTorchFunctionTLS.h>

#include <map>

#include "plugin/eager/eager_tensor.hpp"
#include "plugin/eager/own_functions.hpp"
#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

/// A function of torch.nn.functional. A wrapper in Python takes one tensor and, by name, `settings`: ",alpha,".
struct NetworkFunction {
  std::string_view name, operator_name, settings;
  bool is_wrapper;
};

// of python_names.py: functions_of_torch, methods_of_tensors, methods_by_name_alone, functions_of_networks
#include "plugin/eager/python_names.inc"

template <std::size_t size>
bool is_among(const std::string_view (&names)[size], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool skip(std::string_view& name, std::string_view prefix) {
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  return true;
}

using FunctionPtr = std::unique_ptr<Function>;

FunctionPtr of_own(Own own, std::string_view name) { return FunctionPtr(new Function{own, std::string(name)}); }

FunctionPtr of_operator(std::string_view name, Reading reading, const NetworkFunction* wrapper = nullptr) {
  Operators& operators = operators_named(concat("aten::", name), reading);
  if (operators.empty()) throw NotHere();
  return FunctionPtr(new Function{nullptr, std::string(name), &operators, wrapper ? &wrapper->settings : nullptr});
}

FunctionPtr of_network(std::string_view name) {
  if (const Own own = own_network_function(name)) return of_own(own, name);
  const auto found = std::find_if(std::begin(functions_of_networks), std::end(functions_of_networks),
                                  [name](const NetworkFunction& each) { return each.name == name; });
  if (found == std::end(functions_of_networks)) throw NotHere();
  return of_operator(found->operator_name, Reading::function, found->is_wrapper ? found : nullptr);
}

FunctionPtr of_torch(std::string_view name) {
  if (skip(name, "nn.functional.")) return of_network(name);
  if (skip(name, "ops.aten.")) return of_operator(name, Reading::schema);
  for (const std::string_view folder : {"linalg", "special", "fft"})
    if (skip(name, concat(folder, '.'))) return of_operator(concat(folder, '_', name), Reading::function);
  if (const Own own = own_function(name)) return of_own(own, name);
  const bool is_of_tensor = skip(name, "Tensor.");
  if (is_of_tensor ? is_among(methods_of_tensors, name) : is_among(methods_by_name_alone, name))
    return of_operator(name, Reading::method);
  return !is_of_tensor && is_among(functions_of_torch, name) ? of_operator(name, Reading::function) : throw NotHere();
}

FunctionPtr find(std::string_view name) {
  if (!skip(name, "plain.")) skip(name, "torch.");
  return of_torch(name);
}

Settings settings_of_torch(bool same_layout) {
  Settings settings;
  settings.name = "torch";
  settings.same_layout = same_layout;
  return settings;
}

}  // namespace

const c10::IValue& FunctionCall::at(std::size_t index) const {
  if (index >= values.size() || !names[index].empty()) throw NotHere();
  return values[index];
}

at::Tensor& FunctionCall::tensor(std::size_t index) {
  if (!at(index).isTensor()) throw NotHere();
  return values[index].toTensor();
}

at::Tensor& FunctionCall::only_tensor() {
  if (count() != 1) throw NotHere();
  return tensor(0);
}

int64_t FunctionCall::integer(std::size_t index) const {
  if (!at(index).isInt()) throw NotHere();
  return values[index].toInt();
}

c10::IValue Function::operator()(FunctionCall& call) const {
  if (own) return own(call, name);
  if (settings)
    for (std::size_t i = 0; i < call.count(); ++i) {
      const std::string_view given = call.names[i];
      const bool is_setting = settings->find(concat(',', given, ',')) != std::string_view::npos;
      if (i == 0 ? !given.empty() && given != "input" : !is_setting) throw NotHere();
    }
  return operators->call(call);
}

const Function& function_named(std::string_view name) {
  static std::shared_mutex& mutex = *new std::shared_mutex;
  static auto& known = *new std::map<std::string, FunctionPtr, std::less<>>;
  const auto given = [](const FunctionPtr& found) -> const Function& { return found ? *found : throw NotHere(); };
  {
    const std::shared_lock<std::shared_mutex> lock(mutex);
    const auto entry = known.find(name);
    if (entry != known.end()) return given(entry->second);
  }
  FunctionPtr made;
  try {
    made = find(name);
  } catch (const NotHere&) {
  }
  const std::unique_lock<std::shared_mutex> lock(mutex);
  return given(known.emplace(name, std::move(made)).first->second);
}

c10::IValue call_function(std::string_view name, FunctionCall& call) {
  if (at::impl::torch_function_mode_enabled()) throw NotHere();  // such as that of torch.set_default_device
  return function_named(name)(call);
}

c10::IValue call_function(std::string_view name, bool same_layout, Args inputs, at::Tensor tensors[]) {
  static const Settings& reversed = *new Settings(settings_of_torch(false));
  static const Settings& same = *new Settings(settings_of_torch(true));
  const Settings& settings = same_layout ? same : reversed;
  if (at::impl::torch_function_mode_enabled()) throw NotHere();  // such as that of torch.set_default_device
  const Function& function = function_named(name);
  std::optional<FramePool::Lease> frame;
  FunctionCall call;
  call.values.reserve(static_cast<std::size_t>(inputs.count));
  call.names.reserve(static_cast<std::size_t>(inputs.count));
  for (int32_t i = 0; i < inputs.count; ++i) {
    const fpt_arg& input = inputs[i];
    if (tensors[i].defined()) {
      call.add(std::move(tensors[i]), input.name);
    } else if (is_value(input)) {
      call.add(value_of(input), input.name);
    } else {
      if (!frame) (*frame.emplace(function.frames[same_layout])).begin(settings, /*may_keep=*/true);
      try {
        call.add((**frame).tensor(settings, input, "input", i), input.name);
      } catch (const Error& error) {
        throw Error(error.status(), concat(argument_label("input", i, input), " of ", name, ": ", error.text()));
      }
    }
  }
  c10::IValue result;
  try {
    result = function(call);
  } catch (const NotHere&) {
    throw;
  } catch (...) {
    rethrow_as_python(concat(name, " of torch"), described(inputs, same_layout));
  }
  if (!frame) return result;
  std::vector<at::Tensor> results;
  if (result.isTensor()) results.push_back(result.toTensor());
  if (result.isTensorList()) results = result.toTensorVector();
  if (result.isTuple())
    for (const c10::IValue& each : result.toTupleRef().elements()) results.push_back(each.toTensor());
  call.values.clear();  // what is left of an input then was kept
  (**frame).finish(concat(name, " of torch"), results);
  return result;
}

}  // namespace fpt::direct
