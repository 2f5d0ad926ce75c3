// SPDX-License-Identifier: MIT
/// An exception that is kept aside comes back as it was, and counts of references are what they are taken for.
#include "python/interpreter.hpp"
#include "python/ownership.hpp"
#include "python/pyref.hpp"
#include "script.hpp"

namespace fpt {
namespace {

struct PyRefTest : testing::Test {
  test::Script script{"def fails(): raise KeyError('first')"};
  InterpreterLock lock;  // after the script: released before it goes
};

TEST_F(PyRefTest, AKeptExceptionComesBackInPlaceOfAnother) {
  PyErr_SetString(PyExc_ValueError, "first");
  {
    const KeptException kept;
    EXPECT_FALSE(PyErr_Occurred());
    EXPECT_EQ(Py_TYPE(kept.get()), reinterpret_cast<PyTypeObject*>(PyExc_ValueError));
    PyErr_SetString(PyExc_TypeError, "second");
  }
  EXPECT_TRUE(PyErr_ExceptionMatches(PyExc_ValueError));
  PyErr_Clear();
}

TEST_F(PyRefTest, NothingKeptIsNothingSet) {
  {
    const KeptException kept;
    EXPECT_EQ(kept.get(), nullptr);
    PyErr_SetString(PyExc_TypeError, "inside");
  }
  EXPECT_FALSE(PyErr_Occurred());
}

TEST_F(PyRefTest, TheTracebackStays) {
  const Ref names(PyDict_New());
  EXPECT_FALSE(Ref(PyRun_String("def f(): raise KeyError(1)\nf()", Py_file_input, names.get(), names.get())));
  {
    const KeptException kept;
  }
  const Ref exception = take_exception();
  ASSERT_TRUE(exception);
  EXPECT_TRUE(Ref(PyException_GetTraceback(exception.get())));
}

TEST_F(PyRefTest, CountsOfReferencesAreProofHere) {
  EXPECT_TRUE(counts_are_proof());
  const Ref object(PyList_New(0));
  EXPECT_EQ(holders_of(object.get()), 1);
  const Ref again = object;
  EXPECT_EQ(holders_of(object.get()), 2);
}

}  // namespace
}  // namespace fpt
