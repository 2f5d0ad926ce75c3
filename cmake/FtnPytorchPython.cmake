# SPDX-License-Identifier: MIT
# The Python that the library embeds and that runs the code generator. Sets the targets Python::Interpreter, Python::Module
# and pybind11::headers; for tests Python::Python and FTN_PYTORCH_LIBPYTHON. The library opens libpython when it needs it, so it
# links none.
#
# Choice: -DPython_EXECUTABLE, FTN_PYTORCH_PYTHON, an active virtual or conda environment, .venv of this project,
# python3 on the path. The choice is kept in the cache.

if(NOT Python_EXECUTABLE)
  foreach(candidate IN ITEMS "$ENV{FTN_PYTORCH_PYTHON}" "$ENV{VIRTUAL_ENV}/bin/python" "$ENV{CONDA_PREFIX}/bin/python"
                             "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    if(EXISTS "${candidate}")
      set(Python_EXECUTABLE "${candidate}" CACHE FILEPATH "Python to embed")
      break()
    endif()
  endforeach()
endif()

find_package(Python 3.10 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module Development.Embed)
if(NOT Python_Interpreter_FOUND)
  message(FATAL_ERROR "No Python 3.10 or newer found. Name one with -DPython_EXECUTABLE=/path/to/python.")
endif()
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
          "import sys; from sysconfig import get_config_var as var\nprint(sys.executable, var('Py_ENABLE_SHARED') or 0, \
var('Py_GIL_DISABLED') or 0, sep=';')"
  OUTPUT_VARIABLE answer OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
list(GET answer 0 FTN_PYTORCH_BUILD_PYTHON) # never a shim, unlike Python_EXECUTABLE
list(GET answer 1 shared)
list(GET answer 2 free_threaded)
if(free_threaded)
  message(FATAL_ERROR
    "${Python_EXECUTABLE} is a free-threaded Python, and this library needs one with the global interpreter lock.")
endif()
# Wheels are built by a Python that need not be shared, and extensions for one that runs already.
if(NOT shared AND NOT FTN_PYTORCH_WHEEL AND NOT FTN_PYTORCH_EXTENSIONS_ONLY)
  message(FATAL_ERROR
    "${Python_EXECUTABLE} has no shared libpython, so it cannot be embedded. Use a Python that was configured with "
    "--enable-shared: that of the distribution, of conda, or PYTHON_CONFIGURE_OPTS=--enable-shared pyenv install.")
endif()
if(NOT Python_Development.Module_FOUND OR (FTN_PYTORCH_BUILD_TESTS AND NOT Python_Development.Embed_FOUND))
  message(FATAL_ERROR
    "${Python_EXECUTABLE} lacks its headers or its library (Python.h, libpython${Python_VERSION_MAJOR}."
    "${Python_VERSION_MINOR}.so). Install them (Debian, Ubuntu: python3-dev).")
endif()
if(FTN_PYTORCH_BUILD_TESTS)
  list(GET Python_LIBRARIES 0 FTN_PYTORCH_LIBPYTHON)
endif()
message(STATUS "Python ${Python_VERSION}: ${Python_EXECUTABLE}")

if(NOT TARGET pybind11::headers AND NOT FTN_PYTORCH_EXTENSIONS_ONLY)
  # Not --cmakedir, which quotes a folder for a shell.
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import pybind11; print(pybind11.get_cmake_dir())"
    OUTPUT_VARIABLE pybind11_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.11 CONFIG QUIET)
  if(NOT pybind11_FOUND)
    message(FATAL_ERROR "pybind11 is missing. Install it with: ${Python_EXECUTABLE} -m pip install pybind11")
  endif()
endif()
