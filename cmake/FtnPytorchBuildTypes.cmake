# SPDX-License-Identifier: MIT
# Flags of this project when it is the top level: warnings, Release by default, run-time checks in Debug, and Profile.
# What ccache has seen is not compiled again, where there is a ccache.

add_compile_options(
  "$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic>"
  "$<$<COMPILE_LANG_AND_ID:Fortran,GNU>:-Wall>")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo, MinSizeRel or Profile" FORCE)
endif()

if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
  set(CMAKE_Fortran_FLAGS_DEBUG "-g -Og -fcheck=all -fbacktrace -ffpe-trap=invalid,zero,overflow")
endif()

find_program(FTN_PYTORCH_CCACHE ccache)
mark_as_advanced(FTN_PYTORCH_CCACHE)
foreach(language C CXX)
  if(FTN_PYTORCH_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    # Tests have precompiled headers.
    set(CMAKE_${language}_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${FTN_PYTORCH_CCACHE}")
  endif()
endforeach()

# CMake gives folders of libraries as -Wl,-rpath,FOLDER, which compilers split at the commas of a checkout's path.
if("${PROJECT_SOURCE_DIR}${PROJECT_BINARY_DIR}" MATCHES ",")
  foreach(kind SHARED_LIBRARY EXECUTABLE)
    foreach(language C CXX Fortran)
      set(CMAKE_${kind}_RUNTIME_${language}_FLAG "-Xlinker -rpath -Xlinker ")
      set(CMAKE_${kind}_RPATH_LINK_${language}_FLAG "-Xlinker -rpath-link -Xlinker ")
    endforeach()
  endforeach()
endif()

# gprof: a program writes gmon.out to its working directory when it ends.
if(CMAKE_BUILD_TYPE STREQUAL "Profile" AND CMAKE_Fortran_COMPILER)
  include(CheckCompilerFlag)
  check_compiler_flag(Fortran -pg FTN_PYTORCH_FORTRAN_HAS_PG)
  if(NOT FTN_PYTORCH_FORTRAN_HAS_PG)
    message(FATAL_ERROR
      "The build type Profile is for gprof, whose flag -pg ${CMAKE_Fortran_COMPILER} does not have. Use gfortran, or "
      "RelWithDebInfo and perf.")
  endif()
endif()
foreach(language C CXX Fortran)
  set(CMAKE_${language}_FLAGS_PROFILE "-O2 -g -pg -fno-omit-frame-pointer")
endforeach()
set(CMAKE_EXE_LINKER_FLAGS_PROFILE "-pg")
set(CMAKE_SHARED_LINKER_FLAGS_PROFILE "-pg")
