// SPDX-License-Identifier: MIT
#include "plugin/model/method.hpp"

#include "plugin/scalars.hpp"

namespace fpt::direct {
namespace {

std::string plain_type(const c10::Argument& argument) { return argument.type()->repr_str(); }

/// The type that Python gives a value, for texts.
const char* python_type(const fpt_arg& arg) {
  if (arg.dtype == FPT_TEXT) return "str";
  if (arg.dtype == FPT_BOOL) return "bool";
  return is_complex(arg.dtype) ? "complex" : is_real(arg.dtype) ? "float" : "int";
}

std::string described(const fpt_arg& arg, const Settings& settings) {
  const std::string name = arg.name[0] ? concat(arg.name, "=") : "";
  if (is_value(arg)) return name + python_type(arg);
  const Array array = array_of(arg);
  return concat(name, dtype_name(settings.wanted_dtype(arg.dtype)), " array of shape ",
                shape_text(settings.same_layout ? array : reversed(array)));
}

/// A scalar as the model declares it: Python's rules, under which an int is a float but not the other way round.
bool convert_scalar(c10::IValue& value, const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::FloatType:
      if (value.isInt()) value = static_cast<double>(value.toInt());
      if (value.isBool()) value = value.toBool() ? 1.0 : 0.0;
      return value.isDouble();
    case c10::TypeKind::IntType:
      if (value.isBool()) value = static_cast<int64_t>(value.toBool());
      return value.isInt();
    case c10::TypeKind::BoolType:
      return value.isBool();
    case c10::TypeKind::ComplexType:
      if (value.isInt()) value = c10::complex<double>(static_cast<double>(value.toInt()));
      if (value.isDouble()) value = c10::complex<double>(value.toDouble());
      return value.isComplexDouble();
    case c10::TypeKind::NumberType:
      return value.isScalar();
    case c10::TypeKind::StringType:
      return value.isString();
    case c10::TypeKind::AnyType:
      return true;
    case c10::TypeKind::OptionalType:
      return convert_scalar(value, *type.castRaw<c10::OptionalType>()->getElementType());
    default:
      return value.type()->isSubtypeOf(type);
  }
}

bool takes_tensor(const c10::Type& type) {
  return type.kind() == c10::TypeKind::TensorType || c10::TensorType::get()->isSubtypeOf(type);
}

}  // namespace

std::string described(Inputs inputs, const Settings& settings) {
  std::string all;
  for (int32_t i = 0; i < inputs.count; ++i) all += (i ? ", " : "") + described(inputs.args[i], settings);
  return inputs.count ? concat("(", all, ")") : "no arguments";
}

Method::Method(const torch::jit::Module& module, const std::string& name, const Settings& settings)
    : label_(settings.label(name == "forward" ? "ftn_pytorch_forward" : name)),
      name_(name),
      schema_(&module.get_method(name).function().getSchema()),
      effects_(effects_of(module, name)) {
  use(module);
}

void Method::run_as_written() {
  torch::jit::toGraphFunction(*function_)
      ._set_initial_executor_execution_mode(torch::jit::ExecutorExecutionMode::SIMPLE);
}

void Method::use(const torch::jit::Module& module) {
  function_ = &module.get_method(name_).function();
  self_ = module._ivalue();
}

void Method::refuse(const Settings& settings, Inputs inputs, const std::string& reason) const {
  std::string parameters;
  for (std::size_t i = 1; i < schema_->arguments().size(); ++i) {
    const c10::Argument& argument = schema_->arguments()[i];
    parameters += concat(i > 1 ? ", " : "", argument.name());
    if (argument.default_value()) parameters += concat("=", *argument.default_value());
  }
  fail(FPT_ERR_SIGNATURE, "the model ", settings.name, " defines ", name_, "(", parameters, ") and is called with ",
       described(inputs, settings), ": ", reason);
}

std::size_t Method::position_of(const fpt_arg& arg, int32_t index, const Settings& settings, Inputs inputs) const {
  const auto& wanted = schema_->arguments();
  if (!arg.name[0]) {
    if (static_cast<std::size_t>(index) + 1 >= wanted.size()) refuse(settings, inputs, "too many positional arguments");
    return static_cast<std::size_t>(index) + 1;
  }
  for (std::size_t i = 1; i < wanted.size(); ++i)
    if (wanted[i].name() == arg.name) return i;
  refuse(settings, inputs, concat("got an unexpected keyword argument '", arg.name, "'"));
}

void Method::push(const Settings& settings, Frame& frame, Inputs inputs) const {
  const auto& wanted = schema_->arguments();
  torch::jit::Stack& stack = frame.stack;
  stack.clear();
  stack.resize(wanted.size());
  stack[0] = self_;
  if (name_ == "forward" && wanted.size() == 2 && wanted[1].type()->kind() == c10::TypeKind::DictType)
    return push_dictionary(settings, frame, inputs, wanted[1]);
  std::vector<bool>& given = frame.given;
  given.assign(wanted.size(), false);
  for (int32_t i = 0; i < inputs.count; ++i) {
    const fpt_arg& arg = inputs.args[i];
    const std::size_t position = position_of(arg, i, settings, inputs);
    if (given[position]) refuse(settings, inputs, concat("multiple values for argument '", arg.name, "'"));
    given[position] = true;
    stack[position] = argument(settings, frame, inputs, i, wanted[position]);
  }
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (given[i]) continue;
    if (!wanted[i].default_value())
      refuse(settings, inputs, concat("missing a required argument: '", wanted[i].name(), "'"));
    stack[i] = *wanted[i].default_value();
  }
}

void Method::push_dictionary(const Settings& settings, Frame& frame, Inputs inputs, const c10::Argument& wanted) const {
  const auto type = wanted.type()->expect<c10::DictType>();
  c10::impl::GenericDict entries(type->getKeyType(), type->getValueType());
  for (int32_t i = 0; i < inputs.count; ++i) {
    const fpt_arg& arg = inputs.args[i];
    if (!arg.name[0])
      refuse(settings, inputs,
             "the model takes a dictionary: give the inputs the names of its entries, torch_in(name, x)");
    entries.insert(std::string(arg.name),
                   argument(settings, frame, inputs, i, c10::Argument(arg.name, type->getValueType())));
  }
  frame.stack[1] = std::move(entries);
}

c10::IValue Method::argument(const Settings& settings, Frame& frame, Inputs inputs, int32_t index,
                             const c10::Argument& wanted) const {
  const fpt_arg& arg = inputs.args[index];
  try {
    if (!is_value(arg)) {
      const bool is_given = inputs.tensors && inputs.tensors[index].defined();
      const at::Tensor& tensor = is_given ? inputs.tensors[index] : frame.tensor(settings, arg, "input", index);
      if (takes_tensor(*wanted.type())) return tensor;
      if (arg.rank == 0) {
        c10::IValue value = tensor.item();
        if (convert_scalar(value, *wanted.type())) return value;
      }
    } else {
      c10::IValue value = value_of(arg);
      if (convert_scalar(value, *wanted.type())) return value;
    }
  } catch (const Error& error) {
    fail(error.status(), argument_label("input", index, arg), " of ", label_, ": ", error.text());
  }
  fail(FPT_ERR_PYTHON, label_, " expects a value of type '", plain_type(wanted), "' for its argument '", wanted.name(),
       "', but ", argument_label("input", index, arg), " is ", described(arg, settings));
}

c10::IValue Method::run(Frame& frame, const torch::jit::Module& module) const {
  frame.stack[0] = module._ivalue();
  return run(frame, module.get_method(name_).function());
}

c10::IValue Method::run(Frame& frame) const { return run(frame, *function_); }

c10::IValue Method::run(Frame& frame, torch::jit::Function& function) {
  function.run(frame.stack);
  c10::IValue result = std::move(frame.stack.back());
  frame.stack.clear();
  return result;
}

}  // namespace fpt::direct
