// SPDX-License-Identifier: MIT
#include "script/out_argument.hpp"

#include <utility>

#include "arrays/copy.hpp"
#include "arrays/policy.hpp"
#include "base/error.hpp"
#include "python/interpreter.hpp"

namespace fpt {
namespace {

/// Whether an array object is still on the memory that it was made of.
bool is_on(PyObject* object, const Array& array) {
  try {
    return view_of(object).array.data == array.data;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

OutArgument::OutArgument(const Script& script, Function& function, Args outputs, bool watched)
    : script_(script), function_(function), outputs_(outputs) {
  const int32_t count = outputs.count;
  const bool several = count > 1, named = several && outputs[0].name[0] != '\0';
  if (several) object_ = checked(named ? PyDict_New() : PyList_New(count), "out");
  for (int32_t i = 0; i < count; ++i) {
    const fpt_arg& output = outputs[i];
    const auto label = [&] { return argument_label("output", i, output); };  // a text costs more than the rest
    if (output.status != FPT_OK) require_described(output, label());
    if (several && named != (output.name[0] != '\0')) refuse_some_names(concat(function.name, " of ", script.name));
    if (output.access != FPT_OUT && output.rank > 0)
      fail(FPT_ERR_ARGUMENT, label(), " was described by torch_in or torch_copy, but ", function.name,
           " writes into it (its parameter `out`): use torch_out");
    if (is_value(output) || !is_argument(output.dtype))
      fail(FPT_ERR_KIND, label(), " cannot be written in place by ", function.name,
           ", which has a parameter `out`: arrays and torch_out of a number can");
    if (named && PyDict_GetItemString(object_.get(), output.name))
      refuse_same_name("outputs", function.name, output.name);
    const Array array = placed_array_of(output);
    const ScriptForm form{script.framework,    script.options.same_layout, array.dtype, false, false,
                          script.refers_weakly};
    Ref value;
    try {
      value = function.outputs.at(static_cast<std::size_t>(i)).get(array, form);
    } catch (const Error& error) {
      fail(error.status(), label(), " of ", function.name, ": ", error.text());
    }
    if (watched && element_count(array) > 0 && array.device.is_host())
      watched_.push_back({value, array, version_of(value.get(), script.framework), digest(array), i});
    if (!several)
      object_ = std::move(value);
    else if (!named)
      PyList_SET_ITEM(object_.get(), i, value.release());
    else if (PyDict_SetItemString(object_.get(), output.name, value.get()) != 0)
      throw_python_error(label());
  }
}

/// Whether the function has put another object where it got this one.
bool OutArgument::is_replaced(const Watched& output) const {
  PyObject* object = object_.get();
  if (PyList_Check(object))
    return output.index >= PyList_GET_SIZE(object) || PyList_GET_ITEM(object, output.index) != output.value.get();
  if (PyDict_Check(object)) return PyDict_GetItemString(object, outputs_[output.index].name) != output.value.get();
  return false;
}

void OutArgument::require_written(bool is_first_call) const {
  const bool is_torch = script_.framework == Framework::torch;
  for (const Watched& output : watched_) {
    const bool stayed = is_on(output.value.get(), output.array);
    // writing past torch, as through out.numpy(), is not counted by its versions
    if (stayed &&
        (version_of(output.value.get(), script_.framework) != output.version || digest(output.array) != output.digest))
      continue;
    const std::string text = concat(
        function_.name, " of ", script_.name, " has a parameter `out`, returned nothing and wrote nothing into ",
        argument_label("output", output.index, outputs_[output.index]),
        ": write out[...] = y, out.copy_(y) or pass out=out; out = y only gives another meaning to the name. A result "
        "can also be returned, as can `out` itself where it is meant to stay as it is");
    if (!stayed || function_.neglects_out || is_replaced(output)) fail(FPT_ERR_RESULT_COUNT, text);
    if (is_torch && is_first_call) warn(text);
  }
}

}  // namespace fpt
