// SPDX-License-Identifier: MIT
#include "values/procedure_calls.hpp"

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/kept_lock.hpp"
#include "base/visit.hpp"
#include "python/interpreter.hpp"
#include "values/engine.hpp"
#include "values/object_tensor.hpp"
#include "values/procedures.hpp"
#include "values/scopes.hpp"

namespace fpt {
namespace {

/// A scope of the procedure: what it makes, and the handles of its arguments, end with it.
class ProcedureScope {
 public:
  explicit ProcedureScope(const std::string& name) { begin_scope(&scope_, name); }
  ~ProcedureScope() {
    try {
      end_scope(scope_);
    } catch (...) {
      return;  // the procedure has ended the scope outside, and this one with it
    }
  }
  ProcedureScope(const ProcedureScope&) = delete;
  ProcedureScope& operator=(const ProcedureScope&) = delete;

 private:
  int64_t scope_ = 0;
};

/// What a procedure makes of tensors. `unmade` says what is wrong with a tensor that it did not make.
template <class Unmade>
Ref run(const std::string& label, const std::string& scope_name, fpt_procedure function, void* context,
        PyObject* tensors, int32_t count, const Unmade& unmade) {
  const ProcedureScope scope(scope_name);
  // arrays become tensors of both: Python makes those that its own functions are given
  Engine &ours = engine(), &python = python_engine();
  const uint64_t made_by_us = ours.last_on_memory(), made_by_python = python.last_on_memory();
  std::vector<int64_t> inputs, outputs(static_cast<std::size_t>(count), 0);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors); ++i)
    inputs.push_back(insert_result(tensor_of_object(Ref::borrow(PyTuple_GET_ITEM(tensors, i)), false)));
  int32_t status;
  {
    std::optional<InterpreterPause> pause;
    if (!kept_lock) pause.emplace();
    const Leave leave;
    status = function(context, inputs.data(), static_cast<int32_t>(inputs.size()), outputs.data(), count);
  }
  if (status != 0) fail(FPT_ERR_PYTHON, label, " failed with status ", status);
  Ref made = checked(PyTuple_New(count), label);
  for (int32_t i = 0; i < count; ++i) {
    const int64_t handle = outputs[static_cast<std::size_t>(i)];
    if (!find_tensor(handle)) fail(FPT_ERR_RESULT_COUNT, label, unmade(i + 1));
    const TensorPtr tensor = tensor_at(handle);
    Ref object = torch_object_of(*tensor);
    if (ours.is_on_memory(*tensor, made_by_us) || python.is_on_memory(*tensor, made_by_python))
      fail(FPT_ERR_ARGUMENT, "output ", i + 1, " of ", label, " lies in an array of the program, which may be gone or ",
           "changed when torch uses it: call outputs(", i + 1,
           ")%empty(shape) and fill its memory, or describe a copy ", "with from_array(torch_copy(y))");
    PyTuple_SET_ITEM(made.get(), i, object.release());
  }
  return made;
}

}  // namespace

int32_t outputs_of_procedure(const std::string& name) { return procedure_at(name).outputs; }

Ref call_procedure(const std::string& name, bool adjoint, PyObject* tensors, int32_t count) {
  const Procedure procedure = procedure_at(name);
  const auto function = adjoint ? procedure.adjoint : procedure.forward;
  const std::string label = concat(adjoint ? "the adjoint of procedure \"" : "procedure \"", name, '"');
  if (!function)
    fail(FPT_ERR_HOOK, "procedure \"", name, "\" was registered without an adjoint, so torch finds no gradient");
  return run(label, name, function, procedure.context, tensors, count, [](int32_t output) {
    return concat(" has not made its output ", output, ": call outputs(", output,
                  ")%empty(shape), or assign something to it");
  });
}

Ref call_closure(fpt_procedure closure, void* context) {
  const std::string name = "the closure";
  const Ref none = checked(PyTuple_New(0), name);
  return run(name, name, closure, context, none.get(), 1,
             [](int32_t) { return std::string(" has made no loss: assign one to its argument"); });
}

}  // namespace fpt
