// SPDX-License-Identifier: MIT
/// That observation changes nothing about a call. What it tells is in tests/diagnosis.
#include "observe/observe.hpp"
#include "python/interpreter.hpp"
#include "script.hpp"
#include "script/observed_function.hpp"

namespace fpt {
namespace {

/// With the interpreter lock: names defined by a source, and one of them observed.
struct ObservedTest : testing::Test {
  static void SetUpTestSuite() { ensure_started(); }
  const InterpreterLock gil;
  const Ref names{PyDict_New()};

  Ref run(const char* source) {
    PyDict_SetItemString(names.get(), "__builtins__", PyEval_GetBuiltins());
    return checked(PyRun_String(source, Py_file_input, names.get(), names.get()), "the test");
  }
  PyObject* name(const char* text) { return PyDict_GetItemString(names.get(), text); }
  Ref observed(const char* text) { return observed_function(Ref::borrow(name(text)), Py_None, text, 0); }
};

TEST_F(ObservedTest, ArgumentsAndResultPassThroughAsTheyAre) {
  run("def f(a, *rest, scale, **more): return [a, rest, scale, more]\n");
  const Ref function = observed("f");
  const Ref a(PyList_New(0)), b(PyLong_FromLong(70000)), keywords(Py_BuildValue("(ss)", "scale", "dt"));
  PyObject* arguments[] = {nullptr, a.get(), b.get(), b.get(), a.get()};
  const Ref result(
      PyObject_Vectorcall(function.get(), arguments + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, keywords.get()));
  ASSERT_TRUE(result);
  EXPECT_EQ(PyList_GetItem(result.get(), 0), a.get());
  EXPECT_EQ(PyTuple_GetItem(PyList_GetItem(result.get(), 1), 0), b.get());
  EXPECT_EQ(PyList_GetItem(result.get(), 2), b.get());
  EXPECT_EQ(PyDict_GetItemString(PyList_GetItem(result.get(), 3), "dt"), a.get());
}

TEST_F(ObservedTest, AnExceptionPassesThroughWithItsTraceback) {
  run("class Odd(BaseException): pass\ndef f(): raise Odd('so')\n");
  const Ref function = observed("f");
  Crossing crossing({0, "f"});
  const Ref result(PyObject_CallNoArgs(function.get()));
  EXPECT_FALSE(result);
  EXPECT_TRUE(PyErr_ExceptionMatches(name("Odd")));
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  const Ref owned_type(type), owned_value(value), owned_traceback(traceback);
  EXPECT_TRUE(traceback);
}

TEST_F(ObservedTest, NothingIsKeptOfACallOrOfTheFunction) {
  run("import weakref\nclass Thing: pass\ndef f(x): return Thing()\nfunction = weakref.ref(f)\n");
  {
    const Ref function = observed("f"), thing(PyObject_CallNoArgs(name("Thing")));
    const Py_ssize_t before = Py_REFCNT(thing.get());
    const Ref result(PyObject_CallFunctionObjArgs(function.get(), thing.get(), nullptr));
    ASSERT_TRUE(result);
    EXPECT_EQ(Py_REFCNT(thing.get()), before);
    EXPECT_EQ(Py_REFCNT(result.get()), 1);
    run("del f\n");
    EXPECT_NE(PyWeakref_GetObject(name("function")), Py_None) << "still to be called";
  }
  EXPECT_EQ(PyWeakref_GetObject(name("function")), Py_None);
}

}  // namespace
}  // namespace fpt
