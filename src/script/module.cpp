// SPDX-License-Identifier: MIT
#include "script/module.hpp"

#include <algorithm>
#include <cstring>

#include "script/call.hpp"
#include "base/error.hpp"
#include "python/interpreter.hpp"
#include "observe/observe.hpp"
#include "script/observed_function.hpp"

namespace fpt {
namespace {

Ref text_object(std::string_view text) {
  return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"), "text");
}

/// The layout option, needed before the Python side has looked at the options: config arrays follow it too.
bool wants_same_layout(const fpt_arg* options, int32_t count) {
  return std::any_of(options, options + count, [](const fpt_arg& option) {
    return std::strcmp(option.name, "layout") == 0 && option.dtype == FPT_TEXT && text_of(option) == "same";
  });
}

Ref named_values(fpt_arg* values, int32_t count, bool same_layout, const char* what) {
  Ref dict = checked(PyDict_New(), what);
  for (int32_t i = 0; i < count; ++i) {
    const std::string label = argument_label(what, i, values[i]);
    require_described(values[i], label);
    if (!values[i].name[0]) fail(FPT_ERR_ARGUMENT, label, " needs a name: write torch_in(\"name\", value)");
    const Ref value = detached_value(values[i], same_layout, label);
    if (PyDict_SetItemString(dict.get(), values[i].name, value.get()) != 0) throw_python_error(label);
  }
  return dict;
}

}  // namespace

std::unique_ptr<Module> Module::load(int32_t kind, const std::string& file, fpt_arg* options, int32_t noptions,
                                     fpt_arg* config, int32_t nconfig) {
  const std::string context = "loading " + file;
  const Ref option_values = named_values(options, noptions, false, "option");
  const Ref config_values = named_values(config, nconfig, wants_same_layout(options, noptions), "config");
  const Ref path = text_object(file);
  const bool had_torch = torch_is_imported();
  auto module = std::make_unique<Module>();
  module->runner_ = checked(
      PyObject_CallFunction(embed("load"), "iOOO", kind, path.get(), option_values.get(), config_values.get()), context);
  module->read_attributes();
  if (!had_torch && torch_is_imported()) register_exit_handler();
  return module;
}

std::string Module::attribute(const char* name) const {
  const Ref value = checked(PyObject_GetAttrString(runner_.get(), name), "reading a runner");
  if (value.get() == Py_None) return {};
  const char* text = PyUnicode_AsUTF8(value.get());
  if (!text) throw_python_error(concat("reading ", name, " of a runner"));
  return text;
}

bool Module::flag(const char* name) const {
  const Ref value = checked(PyObject_GetAttrString(runner_.get(), name), "reading a runner");
  return PyObject_IsTrue(value.get()) == 1;
}

void Module::read_attributes() {
  name_ = attribute("name");
  backend_ = attribute("backend");
  const std::string mode = attribute("mode"), dtype = attribute("dtype");
  mode_ = mode == "safe" ? Mode::safe : Mode::checked;
  framework_ = attribute("framework") == "numpy" ? Framework::numpy : Framework::torch;
  float_dtype_ = dtype == "float32" ? FPT_FLOAT32 : dtype == "float64" ? FPT_FLOAT64 : FPT_NONE;
  same_layout_ = attribute("layout") == "same";
  copies_inputs_ = attribute("inputs") == "copy";
  casts_outputs_ = flag("cast");
  computes_on_device_ = !attribute("device").empty();
}

int32_t Module::wanted_dtype(int32_t dtype) const noexcept {
  if (float_dtype_ == FPT_NONE) return dtype;
  if (is_float(dtype)) return float_dtype_;
  if (is_complex(dtype)) return float_dtype_ == FPT_FLOAT32 ? FPT_COMPLEX64 : FPT_COMPLEX128;
  return dtype;
}

Function& Module::function(std::string_view name, int32_t flags) {
  if (latest_ && latest_->flags == flags && latest_->name == name) return *latest_;
  for (const auto& known : functions_)
    if (known->flags == flags && known->name == name) return *(latest_ = known.get());
  auto function = std::make_unique<Function>();
  function->name = std::string(name);
  function->flags = flags;
  const std::string context = concat("looking up ", name, " in ", name_);
  const Ref key = text_object(name);
  const Ref bound = checked(PyObject_CallFunction(embed("bind"), "OOi", runner_.get(), key.get(), flags), context);
  PyObject* callable = nullptr;
  int one_list = 0, has_out = 0;
  if (!PyArg_ParseTuple(bound.get(), "Opp", &callable, &one_list, &has_out)) throw_python_error(context);
  function->callable = Ref::borrow(callable);
  if (observing) function->callable = observed_function(function->callable, runner_.get(), function->name, flags);
  function->one_list = one_list != 0;
  function->has_out = has_out != 0;
  functions_.push_back(std::move(function));
  return *functions_.back();
}

Function& Module::find_forward(int32_t flags) {
  Function& found = function("ftn_pytorch_forward", flags);
  if (flags == 0) forward_ = &found;
  return found;
}

Function& Module::find_train() { return *(train_ = &function("ftn_pytorch_train", 0)); }

void Module::reload() {
  const bool had_torch = torch_is_imported();
  checked(PyObject_CallFunctionObjArgs(embed("reload"), runner_.get(), nullptr), "reloading " + name_);
  for (auto& function : functions_) retired_.push_back(std::move(function));
  has_leftovers_ = true;
  functions_.clear();
  forward_ = train_ = latest_ = nullptr;
  read_attributes();
  if (!had_torch && torch_is_imported()) register_exit_handler();
}

void Module::save(const std::string& file) {
  const Ref path = text_object(file);
  checked(PyObject_CallFunctionObjArgs(embed("save"), runner_.get(), path.get(), nullptr), "saving " + name_);
}

void Module::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  const Ref path = text_object(folder);
  checked(PyObject_CallFunction(embed("checkpoint"), "OOLL", runner_.get(), path.get(), static_cast<long long>(keep),
                                static_cast<long long>(step)),
          "writing a checkpoint of " + name_);
}

int64_t Module::restore(const std::string& file, bool fallback, int64_t step) {
  const std::string context = "restoring " + name_;
  const Ref path = text_object(file);
  const Ref found = checked(PyObject_CallFunction(embed("restore"), "OOiL", runner_.get(), path.get(), fallback ? 1 : 0,
                                                  static_cast<long long>(step)),
                            context);
  const int64_t restored = PyLong_AsLongLong(found.get());
  if (restored == -1 && PyErr_Occurred()) throw_python_error(context);
  return restored;
}

bool Module::has(const std::string& name) {
  const Ref key = text_object(name);
  const Ref answer = checked(PyObject_CallFunctionObjArgs(embed("has"), runner_.get(), key.get(), nullptr), "has");
  return PyObject_IsTrue(answer.get()) == 1;
}

void ModuleUse::finish() {
  module_->has_leftovers_ = false;
  module_->retired_.clear();
  if (module_->freed_) delete module_;
}

void store_module(std::unique_ptr<Module> module, int64_t* handle) {
  const int64_t old = *handle;
  *handle = modules().insert(std::move(module));
  free_module(old);
}

void free_module(int64_t handle) {
  std::unique_ptr<Module> module = modules().remove(handle);
  if (!module || module->users_ == 0) return;
  module->freed_ = module->has_leftovers_ = true;
  module.release();  // the last ModuleUse deletes it
}

}  // namespace fpt
