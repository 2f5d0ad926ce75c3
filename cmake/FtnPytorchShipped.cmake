# SPDX-License-Identifier: MIT
# What is linked with libtorch, for a wheel: once for each torch in FTN_PYTORCH_TORCHES, as `build-direct` makes it for the torch
# of an environment. One at a time, since each keeps all processors busy. The folder keeps what was compiled: wheels for
# other versions of Python differ in the extension alone.

file(GLOB torches "${FTN_PYTORCH_TORCHES}/torch-*")
if(FTN_PYTORCH_TORCHES AND NOT torches)
  message(FATAL_ERROR "FTN_PYTORCH_TORCHES is ${FTN_PYTORCH_TORCHES}, where no torch is: cmake/wheel/torches.py brings them")
endif()
set(before ftn_pytorch_core)
foreach(torch IN LISTS torches)
  get_filename_component(name "${torch}" NAME)
  set(build "${FTN_PYTORCH_TORCHES}/build/${name}")
  message(STATUS "Wheel: libraries for ${name}")
  # configured each time: the CMake of a build of a wheel is in a temporary folder
  add_custom_target(${name} ALL
    COMMAND "${CMAKE_COMMAND}" -S "${PROJECT_SOURCE_DIR}" -B "${build}" -G "${CMAKE_GENERATOR}"
      "-DCMAKE_BUILD_TYPE=Release"
      "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON"
      "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
      "-DCMAKE_INSTALL_LIBDIR=lib"
      "-DCMAKE_MAKE_PROGRAM=${CMAKE_MAKE_PROGRAM}"
      "-DFTN_PYTORCH_CORE=$<TARGET_FILE:ftn_pytorch_core>"
      "-DFTN_PYTORCH_DIRECT=ON"
      "-DFTN_PYTORCH_EXTENSIONS_ONLY=ON"
      "-DFTN_PYTORCH_SHIPPED=ON"
      "-DFTN_PYTORCH_TORCH=${torch}/torch"
      "-DPython_EXECUTABLE=${Python_EXECUTABLE}"
    COMMAND "${CMAKE_COMMAND}" --build "${build}"
    USES_TERMINAL
    VERBATIM)
  add_dependencies(${name} ${before})
  set(before ${name})
  install(DIRECTORY "${build}/lib/" DESTINATION "${CMAKE_INSTALL_LIBDIR}/${name}" FILES_MATCHING
    PATTERN "lib*.so" PATTERN "lib*.torch" PATTERN "*.${Python_SOABI}.so")
endforeach()
