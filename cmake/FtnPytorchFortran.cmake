# SPDX-License-Identifier: MIT
# Compile the Fortran modules of ftn_pytorch with the compiler and flags of the project at hand. Module files fit one
# compiler only, so the installed package comes as sources, and this file is part of it.
#
#   ftn_pytorch_add_fortran(<target> CORE <library target> SOURCES <file>...)
#   ftn_pytorch_add_ftorch(<target> ON <target with the modules of ftn_pytorch> SOURCES <file>...)
#
# The second one compiles the modules of FTorch.
#
# SOURCES holds both forms of modules that take arrays: X.f90 for arrays of any rank, and X_ranks.f90 with a procedure for
# each rank. FTN_PYTORCH_ARG_RANKS says which form of fpt_arg is compiled: ON fpt_arg_ranks.f90, OFF fpt_arg.f90 and
# fpt_descriptor.c, AUTO the latter if the compiler passes correct descriptors to C. With the latter, the others are compiled
# for any rank if the compiler can do that.

set(FTN_PYTORCH_ARG_RANKS AUTO CACHE STRING "Explicit ranks of arrays: AUTO, ON or OFF")
set_property(CACHE FTN_PYTORCH_ARG_RANKS PROPERTY STRINGS AUTO ON OFF)

# Behind the flags of the project, which may ask for another dialect, for saved local variables, or for warnings as
# errors. Threads of the caller may be in one procedure together: -frecursive.
set(FTN_PYTORCH_GNU_FORTRAN_FLAGS
  -std=gnu -ffree-form -ffree-line-length-none -frealloc-lhs -fautomatic -frecursive -Wno-error -Wno-pedantic)

# ISO_Fortran_binding.h belongs to the Fortran compiler, and the C compiler may be of another make. Only this header is
# taken from there: its neighbours may replace headers of the C compiler.
function(_ftn_pytorch_find_iso_header out)
  get_filename_component(compiler "${CMAKE_Fortran_COMPILER}" REALPATH)
  get_filename_component(prefix "${compiler}/../.." ABSOLUTE)
  set(hints "${prefix}/include/flang" "${prefix}/include" "${prefix}/compiler/include")
  if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    execute_process(
      COMMAND "${CMAKE_Fortran_COMPILER}" -print-file-name=include/ISO_Fortran_binding.h
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(hints "${file}" DIRECTORY)
  endif()
  find_file(FTN_PYTORCH_ISO_FORTRAN_BINDING ISO_Fortran_binding.h HINTS ${hints}
            DOC "ISO_Fortran_binding.h of the Fortran compiler")
  mark_as_advanced(FTN_PYTORCH_ISO_FORTRAN_BINDING)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/ftn_pytorch_iso")
  if(FTN_PYTORCH_ISO_FORTRAN_BINDING)
    configure_file("${FTN_PYTORCH_ISO_FORTRAN_BINDING}" "${folder}/ISO_Fortran_binding.h" COPYONLY)
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# Answer a question about the Fortran compiler, once: is the exit code of a program zero? In a cross build nothing runs,
# and the answer is that the program compiles.
#
#   _ftn_pytorch_probe(<variable> <question> <consequence of a no> <folder of the header> <file of probe/>...)
function(_ftn_pytorch_probe variable question consequence iso_folder)
  if(DEFINED CACHE{${variable}})
    return()
  endif()
  message(CHECK_START "Checking that ${CMAKE_Fortran_COMPILER_ID} Fortran ${question}")
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/probe/" OUTPUT_VARIABLE sources)
  set(program "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${variable}")
  set(result FALSE)
  if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    list(JOIN FTN_PYTORCH_GNU_FORTRAN_FLAGS " " flags)
    string(APPEND CMAKE_Fortran_FLAGS " ${flags}")
  endif()
  if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
    string(APPEND CMAKE_C_FLAGS " -std=gnu11 -Wno-error")
  endif()
  try_compile(compiled "${program}.dir"
    SOURCES ${sources}
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${iso_folder}"
    COPY_FILE "${program}")
  if(compiled AND CMAKE_CROSSCOMPILING)
    set(result TRUE)
  elseif(compiled)
    # with -fsanitize=address, what a main program has allocated at its end is a failure
    execute_process(COMMAND "${CMAKE_COMMAND}" -E env ASAN_OPTIONS=detect_leaks=0 "${program}"
      RESULT_VARIABLE exit_code OUTPUT_QUIET ERROR_QUIET)
    if(exit_code EQUAL 0)
      set(result TRUE)
    endif()
  endif()
  if(result)
    message(CHECK_PASS "yes")
  else()
    message(CHECK_FAIL "no, ${consequence}")
  endif()
  set(${variable} ${result} CACHE INTERNAL "${CMAKE_Fortran_COMPILER_ID} Fortran ${question}")
endfunction()

# Of a module in two forms, one is left in a list of sources.
#
#   _ftn_pytorch_choose_forms(<variable> <folder of the header> <file>...)
function(_ftn_pytorch_choose_forms variable iso_folder)
  set(explicit_arg ${FTN_PYTORCH_ARG_RANKS})
  if(explicit_arg STREQUAL "AUTO")
    # gfortran 11 compiles it and gets type codes wrong.
    _ftn_pytorch_probe(FTN_PYTORCH_HAVE_DESCRIPTORS
      "passes descriptors to C" "torch_in and torch_out get explicit ranks"
      "${iso_folder}" descriptor.f90 descriptor.c)
    set(explicit_arg ON)
    if(FTN_PYTORCH_HAVE_DESCRIPTORS)
      set(explicit_arg OFF)
    endif()
  endif()
  set(explicit ON)
  if(NOT explicit_arg)
    # flang 19 does not compile it.
    _ftn_pytorch_probe(FTN_PYTORCH_HAVE_ASSUMED_RANK
      "takes arrays of any rank" "there is a procedure for each rank"
      "${iso_folder}" assumed_rank.f90 descriptor.c)
    if(FTN_PYTORCH_HAVE_ASSUMED_RANK)
      set(explicit OFF)
    endif()
  endif()

  set(sources ${ARGN})
  if(explicit_arg)
    list(FILTER sources EXCLUDE REGEX "/fpt_descriptor\\.c$")
  endif()
  foreach(source IN LISTS ARGN)
    if(source MATCHES "/([a-z_]+)_ranks\\.f90$")
      set(module ${CMAKE_MATCH_1})
      set(is_explicit ${explicit})
      if(module STREQUAL "fpt_arg")
        set(is_explicit ${explicit_arg})
      endif()
      if(is_explicit)
        list(FILTER sources EXCLUDE REGEX "/${module}\\.f90$")
      else()
        list(FILTER sources EXCLUDE REGEX "/${module}_ranks\\.f90$")
      endif()
    endif()
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

function(ftn_pytorch_add_fortran target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "CORE" "SOURCES")
  _ftn_pytorch_find_iso_header(iso_folder)
  _ftn_pytorch_choose_forms(sources "${iso_folder}" ${ARG_SOURCES})
  _ftn_pytorch_probe(FTN_PYTORCH_HAVE_CLASS_COMPONENTS
    "passes components of class arrays" "torch_in(c%t) is right in select type only, see docs/fortran-api.md"
    "${iso_folder}" class_component.f90 class_component.c)
  _ftn_pytorch_library(${target} ${ARG_CORE} ${sources})
  target_include_directories(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${iso_folder}>")
endfunction()

function(ftn_pytorch_add_ftorch target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "ON" "SOURCES")
  _ftn_pytorch_find_iso_header(iso_folder)
  _ftn_pytorch_choose_forms(sources "${iso_folder}" ${ARG_SOURCES})
  _ftn_pytorch_library(${target} ${ARG_ON} ${sources})
endfunction()

# A library of modules on top of another library
function(_ftn_pytorch_library target base)
  set(modules "${CMAKE_CURRENT_BINARY_DIR}/${target}_modules")
  add_library(${target} STATIC ${ARGN})
  target_link_libraries(${target} PUBLIC ${base})
  target_include_directories(${target} PUBLIC "$<$<COMPILE_LANGUAGE:Fortran>:${modules}>")
  # C: Fortran reads what C has written, as another type, and link-time optimisation must not tell them apart.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:Fortran,GNU>:${FTN_PYTORCH_GNU_FORTRAN_FLAGS}>"
    "$<$<COMPILE_LANG_AND_ID:Fortran,LLVMFlang>:-w>"
    "$<$<COMPILE_LANG_AND_ID:C,GNU,Clang>:-std=gnu11;-Wno-error;-fno-strict-aliasing>")
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11
    Fortran_FORMAT FREE
    Fortran_MODULE_DIRECTORY "${modules}"
    Fortran_PREPROCESS OFF
    POSITION_INDEPENDENT_CODE ON)
endfunction()
