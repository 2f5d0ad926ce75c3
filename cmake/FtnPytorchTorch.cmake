# SPDX-License-Identifier: MIT
# The torch of the Python at hand, or of the folder FTN_PYTORCH_TORCH, for the direct path: its C++ headers and libraries. Sets
# FTN_PYTORCH_TORCH_FOLDER (empty: no direct path) and FTN_PYTORCH_TORCH_VERSION, the target ftn_pytorch_torch, and
# FTN_PYTORCH_TORCH_LIBRARIES, the targets of what is linked with it; and FTN_PYTORCH_CUDA_HEADERS, a folder, where torch is
# built for CUDA and its headers are found. They come with the toolkit, and with some of torch's packages.
#
# The package is found, not imported, which would take seconds. find_package(Torch) is not used: it wants the CUDA
# compiler where torch can use CUDA, and none is needed here.

set(FTN_PYTORCH_DIRECT AUTO CACHE STRING "Saved models through libtorch, without Python: AUTO, ON or OFF")
set_property(CACHE FTN_PYTORCH_DIRECT PROPERTY STRINGS AUTO ON OFF)
set(FTN_PYTORCH_TORCH "" CACHE PATH "Folder of a torch package in place of that of the Python at hand")
option(FTN_PYTORCH_SHIPPED "What is linked with libtorch is for all releases of its minor version, in any environment" OFF)
mark_as_advanced(FTN_PYTORCH_TORCH FTN_PYTORCH_SHIPPED)
set(FTN_PYTORCH_TORCH_LIBRARIES ftn_pytorch_direct ftn_pytorch_recording)

function(_ftn_pytorch_find_torch folder_out version_out reason_out)
  set(${folder_out} "" PARENT_SCOPE)
  set(folder "${FTN_PYTORCH_TORCH}")
  if(NOT folder)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
              "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if(NOT folder)
    set(${reason_out} "${Python_EXECUTABLE} has no torch" PARENT_SCOPE)
    return()
  endif()
  file(REAL_PATH "${folder}" folder)
  file(STRINGS "${folder}/version.py" line REGEX "^__version__")
  string(REGEX MATCH "[0-9][^'\"]*" version "${line}")
  foreach(file IN ITEMS include/ATen/core/ivalue.h lib/libtorch.so lib/libtorch_cpu.so lib/libc10.so)
    if(NOT EXISTS "${folder}/${file}")
      set(${reason_out} "torch ${version} has no ${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(FTN_PYTORCH_DIRECT STREQUAL "AUTO" AND version VERSION_LESS 2.11)
    set(${reason_out} "torch ${version} is older than 2.11; FTN_PYTORCH_DIRECT=ON tries it" PARENT_SCOPE)
    return()
  endif()
  set(${folder_out} "${folder}" PARENT_SCOPE)
  set(${version_out} "${version}" PARENT_SCOPE)
endfunction()

set(FTN_PYTORCH_TORCH_FOLDER "")
set(FTN_PYTORCH_TORCH_VERSION "")
if(FTN_PYTORCH_DIRECT)
  _ftn_pytorch_find_torch(FTN_PYTORCH_TORCH_FOLDER FTN_PYTORCH_TORCH_VERSION reason)
  if(FTN_PYTORCH_TORCH_FOLDER)
    message(STATUS "Direct path: torch ${FTN_PYTORCH_TORCH_VERSION} in ${FTN_PYTORCH_TORCH_FOLDER}")
  elseif(FTN_PYTORCH_DIRECT STREQUAL "AUTO")
    message(STATUS "Direct path: off, ${reason}")
  else()
    message(FATAL_ERROR "FTN_PYTORCH_DIRECT=ON, but ${reason}. Install torch for this Python, or name another with "
                        "-DPython_EXECUTABLE.")
  endif()
else()
  message(STATUS "Direct path: off")
endif()

if(EXISTS "${FTN_PYTORCH_TORCH_FOLDER}/include/torch/csrc/jit/api/module.h")
  list(APPEND FTN_PYTORCH_TORCH_LIBRARIES ftn_pytorch_torchscript)
endif()

if(FTN_PYTORCH_TORCH_FOLDER)
  # Wheels up to 2.5 were built with the strings of GCC 4.
  file(STRINGS "${FTN_PYTORCH_TORCH_FOLDER}/share/cmake/Torch/TorchConfig.cmake" flags REGEX "_GLIBCXX_USE_CXX11_ABI=")
  string(REGEX MATCH "_GLIBCXX_USE_CXX11_ABI=[01]" abi "${flags}")
  set(libraries "${FTN_PYTORCH_TORCH_FOLDER}/lib")
  add_library(ftn_pytorch_torch INTERFACE)
  target_compile_definitions(ftn_pytorch_torch INTERFACE ${abi})
  target_include_directories(ftn_pytorch_torch SYSTEM INTERFACE
    "${FTN_PYTORCH_TORCH_FOLDER}/include" "${FTN_PYTORCH_TORCH_FOLDER}/include/torch/csrc/api/include")
  target_link_libraries(ftn_pytorch_torch INTERFACE
    "${libraries}/libtorch.so" "${libraries}/libtorch_cpu.so" "${libraries}/libc10.so")
  if(FTN_PYTORCH_SHIPPED) # texts of its checks name headers
    target_compile_options(ftn_pytorch_torch INTERFACE "-ffile-prefix-map=${FTN_PYTORCH_TORCH_FOLDER}=torch")
  endif()
  # libtorch of a CUDA or ROCm build registers its devices when it is loaded; nothing here refers to it by name.
  target_link_options(ftn_pytorch_torch INTERFACE "LINKER:--no-as-needed")

  if(EXISTS "${FTN_PYTORCH_TORCH_FOLDER}/include/ATen/cuda/CUDAConfig.h" AND NOT FTN_PYTORCH_CUDA_HEADERS)
    # cuda_runtime_api.h needs this file, which some packages leave out
    find_path(FTN_PYTORCH_CUDA_HEADERS crt/host_defines.h HINTS ENV CUDA_HOME PATHS /usr/local/cuda
      "${FTN_PYTORCH_TORCH_FOLDER}/../nvidia/cu13" "${FTN_PYTORCH_TORCH_FOLDER}/../nvidia/cuda_runtime"
      "${FTN_PYTORCH_TORCH_FOLDER}/../triton/backends/nvidia"
      PATH_SUFFIXES include)
    if(FTN_PYTORCH_CUDA_HEADERS)
      message(STATUS "Saved recordings on a GPU: CUDA graphs, with the headers in ${FTN_PYTORCH_CUDA_HEADERS}")
    else()
      message(STATUS "Saved recordings on a GPU: no CUDA graphs, no toolkit is found (CUDA_HOME)")
    endif()
  endif()
endif()
