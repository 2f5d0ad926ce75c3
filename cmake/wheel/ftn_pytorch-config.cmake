# SPDX-License-Identifier: MIT
# In <environment>/lib/cmake/ftn_pytorch, where CMake looks once the environment is active. The package itself is among those
# of Python.
include("${CMAKE_CURRENT_LIST_DIR}/ftn_pytorch-config-version.cmake")
if(NOT ftn_pytorch_package_file)
  set(ftn_pytorch_FOUND FALSE)
  set(ftn_pytorch_NOT_FOUND_MESSAGE "The Python package ftn-pytorch is not installed beside ${CMAKE_CURRENT_LIST_DIR}.")
  return()
endif()
include("${ftn_pytorch_package_file}")
