// SPDX-License-Identifier: MIT
#include "plugin/eager/schema_call.hpp"

#include <ATen/ScalarOps.h>

#include <map>

#include "ftr/schema_types.hpp"
#include "plugin/eager/dtypes.hpp"

namespace fpt::direct {
namespace {

/// Operators whose tensors may be numbers in Python (torch/csrc/utils/python_arg_parser.cpp).
constexpr std::string_view numeric[] = {"add",      "div", "divide",   "floor_divide", "mul",
                                        "multiply", "sub", "subtract", "true_divide"};

bool is_numeric(std::string_view name) {
  if (!name.empty() && name.back() == '_') name.remove_suffix(1);
  return std::find(std::begin(numeric), std::end(numeric), name) != std::end(numeric);
}

/// What overloads are told apart by.
char tag_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    const bool is_list = tensor.dim() == 1 && (tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong);
    return is_list ? 'I' : 'T';
  }
  if (value.isBool()) return 'b';
  if (value.isInt()) return 'i';
  if (value.isDouble()) return 'd';
  if (value.isComplexDouble()) return 'c';
  if (value.isString()) return 's';
  if (value.isIntList()) return 'L';
  if (value.isTensorList()) return 'A';
  throw NotHere();
}

bool is_number(char tag) { return tag == 'b' || tag == 'i' || tag == 'd' || tag == 'c'; }

/// What an answer can hold.
bool are_answers(const std::vector<c10::Argument>& returns) {
  const auto is_tensor = [](const c10::Argument& each) { return each.type()->kind() == c10::TypeKind::TensorType; };
  if (returns.empty() || std::all_of(returns.begin(), returns.end(), is_tensor)) return true;
  const c10::TypePtr& type = returns[0].type();
  if (const auto list = type->cast<c10::ListType>())
    return returns.size() == 1 && list->getElementType()->kind() == c10::TypeKind::TensorType;
  const c10::TypeKind kind = type->kind();
  return returns.size() == 1 && (ftr::is_whole(kind) || ftr::is_real(kind) || kind == c10::TypeKind::NumberType ||
                                 kind == c10::TypeKind::BoolType);
}

/// Of several results, with the names that they have in Python.
c10::TupleTypePtr tuple_of(const c10::FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (returns.size() < 2) return nullptr;
  std::vector<std::string> names;
  std::vector<c10::TypePtr> types;
  for (const c10::Argument& each : returns) {
    if (!each.name().empty()) names.push_back(each.name());
    types.push_back(each.type());
  }
  if (names.size() < returns.size()) return c10::TupleType::create(std::move(types));
  return c10::TupleType::createNamed(c10::QualifiedName("ftn_pytorch." + schema.name().substr(6)), names, types);
}

/// Is told of all operators that there are, in the order in which torch has registered them.
class Overloads : public c10::OpRegistrationListener {
 public:
  Overloads(const std::string& name, std::vector<c10::OperatorHandle>& found) : name_(name), found_(found) {}
  void onOperatorRegistered(const c10::OperatorHandle& each) override {
    if (each.operator_name().name == name_) found_.push_back(each);
  }
  void onOperatorDeregistered(const c10::OperatorHandle&) override {}

 private:
  const std::string& name_;
  std::vector<c10::OperatorHandle>& found_;
};

std::vector<c10::OperatorHandle> overloads_of(const std::string& name) {
  std::vector<c10::OperatorHandle> found;
  (void)c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Overloads>(name, found));
  return found;
}

}  // namespace

Operators::Operators(const std::string& name, Reading reading)
    : reading_(reading), takes_numbers_(is_numeric(name.substr(name.find("::") + 2))) {
  for (c10::OperatorHandle& each : overloads_of(name)) {
    const c10::FunctionSchema& schema = each.schema();
    const auto is_out = [](const c10::Argument& argument) { return argument.is_out(); };
    if (std::any_of(schema.arguments().begin(), schema.arguments().end(), is_out) || !are_answers(schema.returns()))
      continue;
    // a method has its tensor first, wherever the schema has it: Tensor.where
    if (reading == Reading::method && (schema.arguments().empty() || schema.arguments()[0].name() != "self")) continue;
    overloads_.push_back(std::move(each));
  }
}

c10::IValue Operators::call(const GivenArguments& given) {
  const Plan& plan = plan_for(given);
  c10::Stack stack;
  stack.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    if (step.index < 0) {
      stack.push_back(step.value);
      continue;
    }
    const c10::IValue& value = given.values[static_cast<std::size_t>(step.index)];
    switch (step.form) {
      case Form::as_given:
        stack.push_back(value);
        break;
      case Form::wrapped:
        stack.push_back(at::native::wrapped_scalar_tensor(value.toScalar()));
        break;
      case Form::real:
        stack.push_back(static_cast<double>(value.toInt()));
        break;
      case Form::list:
        stack.push_back(c10::List<int64_t>(numbers_of(value.toTensor())));
        break;
      case Form::repeated:
        stack.push_back(c10::List<int64_t>(std::vector<int64_t>(static_cast<std::size_t>(step.count), value.toInt())));
        break;
      case Form::dtype:
        stack.push_back(static_cast<int64_t>(dtype_named(value.toStringRef())));
        break;
      case Form::device:
        stack.push_back(device_named(value.toStringRef()));
        break;
    }
  }
  plan.handle->callBoxed(stack);
  if (stack.empty()) return {};
  if (!plan.results) return std::move(stack[0]);
  return c10::ivalue::Tuple::createNamed(std::move(stack), plan.results);
}

const Operators::Plan& Operators::plan_for(const GivenArguments& given) {
  std::string tags, form;
  for (std::size_t i = 0; i < given.values.size(); ++i) {
    tags += tag_of(given.values[i]);
    form.append(1, tags.back()).append(given.names[i]) += ',';
  }
  {
    const std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto known = plans_.find(form);
    if (known != plans_.end()) return known->second;
  }
  Plan made = planned(given, tags);
  const std::unique_lock<std::shared_mutex> lock(mutex_);
  return plans_.emplace(std::move(form), std::move(made)).first->second;
}

Operators::Plan Operators::planned(const GivenArguments& given, const std::string& tags) const {
  for (const bool lists : {false, true}) {
    Plan best;
    for (const c10::OperatorHandle& overload : overloads_) {
      Plan plan;
      if (!matches(overload.schema(), given, tags, lists, plan) || (best.handle && best.cost <= plan.cost)) continue;
      plan.handle = &overload;
      best = std::move(plan);
    }
    if (!best.handle) continue;
    best.results = tuple_of(best.handle->schema());
    return best;
  }
  throw NotHere();
}

bool Operators::matches(const c10::FunctionSchema& schema, const GivenArguments& given, const std::string& tags,
                        bool lists, Plan& plan) const {
  const auto& declared = schema.arguments();
  const auto count = static_cast<std::size_t>(
      std::count_if(given.names.begin(), given.names.end(), [](std::string_view name) { return name.empty(); }));
  if (count > declared.size()) return false;
  std::size_t used = count;
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const c10::Argument& argument = declared[i];
    Step step;
    if (i < count) {
      if (argument.kwarg_only()) return false;
      step.index = static_cast<int32_t>(i);
    } else {
      // what the schema calls "self" is "input" of a function of Python
      const std::string_view name = argument.name() == "self" ? "input" : std::string_view(argument.name());
      const auto named = std::find(given.names.begin(), given.names.end(), name);
      if (named != given.names.end()) {
        step.index = static_cast<int32_t>(named - given.names.begin());
        ++used;
      }
    }
    if (step.index < 0) {
      if (!argument.default_value()) return false;
      const bool is_constant = reading_ != Reading::schema && argument.name() == "reduction";
      step.value = is_constant ? c10::IValue(0) : *argument.default_value();
      ++plan.cost;
    } else {
      const auto index = static_cast<std::size_t>(step.index);
      const std::optional<Form> form = form_for(argument, tags[index], lists, given.names[index]);
      if (!form) return false;
      step.form = *form;
      if (step.form == Form::repeated) step.count = *argument.N();
      // a number is a scalar before it is a tensor, as Python has it
      if (step.form == Form::wrapped) plan.cost += 100;
    }
    plan.steps.push_back(std::move(step));
  }
  return used == given.values.size();
}

std::optional<Operators::Form> Operators::form_for(const c10::Argument& declared, char tag, bool lists,
                                                   std::string_view name) const {
  const c10::TypePtr type = ftr::without_optional(declared.real_type());
  const c10::TypeKind kind = type->kind();
  const bool is_tuple = lists && tag == 'I';
  if (kind == c10::TypeKind::TensorType) {
    if ((tag == 'T' || tag == 'I') && !is_tuple) return Form::as_given;
    return is_number(tag) && takes_numbers_ ? std::optional(Form::wrapped) : std::nullopt;
  }
  if (kind == c10::TypeKind::NumberType) return is_number(tag) ? std::optional(Form::as_given) : std::nullopt;
  if (kind == c10::TypeKind::BoolType) return tag == 'b' ? std::optional(Form::as_given) : std::nullopt;
  if (ftr::is_whole(kind)) return tag == 'i' ? std::optional(Form::as_given) : std::nullopt;
  if (ftr::is_real(kind))
    return tag == 'd' ? std::optional(Form::as_given) : tag == 'i' ? std::optional(Form::real) : std::nullopt;
  if (kind == c10::TypeKind::StringType) return tag == 's' ? std::optional(Form::as_given) : std::nullopt;
  if (kind == c10::TypeKind::ScalarTypeType)
    return tag == 's' && name == "dtype" ? std::optional(Form::dtype) : std::nullopt;
  if (kind == c10::TypeKind::DeviceObjType) return tag == 's' ? std::optional(Form::device) : std::nullopt;
  const auto list = type->cast<c10::ListType>();
  if (list && list->getElementType()->kind() == c10::TypeKind::TensorType)
    return tag == 'A' ? std::optional(Form::as_given) : std::nullopt;
  if (!list || !ftr::is_whole(list->getElementType()->kind())) return std::nullopt;
  if (tag == 'L') return Form::as_given;
  if (is_tuple) return Form::list;
  return tag == 'i' && declared.N() ? std::optional(Form::repeated) : std::nullopt;
}

Operators& operators_named(const std::string& name, Reading reading) {
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<std::string, Reading>, std::unique_ptr<Operators>>;
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Operators>& found = known[{name, reading}];
  if (!found) found = std::make_unique<Operators>(name, reading);
  return *found;
}

std::vector<int64_t> numbers_of(const at::Tensor& tensor) {
  const at::Tensor numbers = tensor.to(at::kCPU, at::kLong).contiguous();
  const auto* first = numbers.const_data_ptr<int64_t>();
  return {first, first + numbers.numel()};
}

}  // namespace fpt::direct
