// SPDX-License-Identifier: MIT
/// The state of files that Python runs: save, checkpoint, restore, and weights for others.
#include <string>
#include <vector>

#include "python/interpreter.hpp"
#include "script/script_runner.hpp"
#include "script/script_use.hpp"
#include "torch/framework.hpp"

namespace fpt {

void ScriptRunner::save(const std::string& file) {
  const Alone alone(*this);
  const Ref path = text_object(file);
  checked(PyObject_CallFunctionObjArgs(embed("save"), script_.runner.get(), path.get(), nullptr),
          "saving " + script_.name);
}

void ScriptRunner::checkpoint(const std::string& folder, int64_t keep, int64_t step) {
  const Alone alone(*this);
  const Ref path = text_object(folder);
  checked(PyObject_CallFunction(embed("checkpoint"), "OOLL", script_.runner.get(), path.get(),
                                static_cast<long long>(keep), static_cast<long long>(step)),
          "writing a checkpoint of " + script_.name);
}

int64_t ScriptRunner::restore(const std::string& file, bool fallback, int64_t step) {
  const Alone alone(*this);
  const std::string context = "restoring " + script_.name;
  const Ref path = text_object(file);
  const Ref found = checked(PyObject_CallFunction(embed("restore"), "OOiL", script_.runner.get(), path.get(),
                                                  fallback ? 1 : 0, static_cast<long long>(step)),
                            context);
  const int64_t restored = PyLong_AsLongLong(found.get());
  if (restored == -1 && PyErr_Occurred()) throw_python_error(context);
  return restored;
}

void ScriptRunner::publish(const std::string& network, Runner& target) {
  const InCall in_call(*this);
  const std::string context = "publishing the weights of " + script_.name;
  const Ref name = text_object(network);
  const Ref weights =
      checked(PyObject_CallFunctionObjArgs(embed("weights"), script_.runner.get(), name.get(), nullptr), context);
  std::vector<NamedArray> values;
  PyObject *key = nullptr, *tensor = nullptr;
  Py_ssize_t position = 0;
  std::vector<View> views;  // the memory of each
  while (PyDict_Next(weights.get(), &position, &key, &tensor)) {
    const char* text = PyUnicode_AsUTF8(key);
    if (!text) throw_python_error(context);
    views.push_back(view_of(tensor));
    values.push_back({text, views.back().array});
  }
  target.assign(values);
}

void ScriptRunner::assign(const std::vector<NamedArray>& values) {
  const Alone alone(*this);
  const std::string context = "publishing weights to " + script_.name;
  const Ref given = checked(PyDict_New(), context);
  for (const NamedArray& value : values) {
    const ArrayObject made = make_array(Framework::torch, value.array, nullptr, false);
    if (PyDict_SetItemString(given.get(), value.name.c_str(), made.object.get()) != 0) throw_python_error(context);
  }
  checked(PyObject_CallFunctionObjArgs(embed("assign"), script_.runner.get(), given.get(), nullptr), context);
}

}  // namespace fpt
