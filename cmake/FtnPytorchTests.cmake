# SPDX-License-Identifier: MIT
# How tests are registered. They run with the Python of the build and find their scripts through FPT_TEST_SCRIPTS.
#
#   fpt_add_test(<name> COMMAND <command>... [LABELS <label>...] [options])
#   fpt_fortran_test(<name> [SOURCES <file>...] [LINK <library>...] [ARGS <argument>...]
#                    [PLAIN | OPTIMIZE <flags>... [SLOW_FLAGS <flags>...]] [UNCHECKED] [FTORCH] [options])
#   fpt_fortran_case(<name> PROGRAM <name> [ARGS <argument>... | COMMAND <command>...] [options])
#   fpt_example_test(<name> [COMMAND <command>...] [ARGS <argument>...] [options])
#
# Options: TIMEOUT <seconds>, WILL_FAIL, PASS_REGULAR_EXPRESSION <regex>, ENVIRONMENT <name=value>...,
# WORKING_DIRECTORY <folder>, FIXTURES <name>... that must be set up before, LOCK <name>... that others hold too,
# SLOW: only `make test-all` runs it, by the label slow.
#
# fpt_fortran_test builds a program from SOURCES (<name>.f90 if there are none, which <name>.fypp generates where that is
# there, for it can walk the tables of the library) and tests/fortran/check.f90, and modules of the library, with the
# run-time checks and floating-point traps of the build type Debug: <name>_checked, unless UNCHECKED is given. The plain
# form, with the flags of the build type, is slow and is called <name>. PLAIN: it is not slow, since optimisation may
# matter. OPTIMIZE is for where it is sure to: a plain form for each entry, such as -O0 -O2 "-O3;-flto", slow for those of
# SLOW_FLAGS; link-time optimisation covers the modules of the library as well. FTORCH: with the modules of FTorch, in
# each form.
# In the build type Debug there is the plain form only. fpt_fortran_case is one more run of such a program in its forms;
# in COMMAND, <program> stands for the program. fpt_example_test runs the target <name> unless COMMAND says otherwise.
#
# Programs of which all runs are slow are there where FTN_PYTORCH_SLOW_TESTS is ON.

# For the preset asan: Python keeps memory until the process ends, tests ask for more than there is, and some look at
# the memory in use, which a large quarantine hides.
set(fpt_asan_options detect_leaks=0 allocator_may_return_null=1 quarantine_size_mb=1 thread_local_quarantine_size_kb=64)
list(JOIN fpt_asan_options : fpt_asan_options)

# Tests run side by side, and threads of OpenMP that spin while they wait would take the processors from each other.
set(fpt_test_environment
  OMP_WAIT_POLICY=passive
  "FTN_PYTORCH_PYTHON=${FTN_PYTORCH_BUILD_PYTHON}"
  "FPT_TEST_SCRIPTS=${PROJECT_SOURCE_DIR}/tests/fortran/scripts"
  "ASAN_OPTIONS=${fpt_asan_options}")
set(fpt_test_timeout 600)

# For tests by mpirun: Open MPI refuses to start more ranks than there are cores, and to run for root, unless it is told
# otherwise.
set(fpt_mpi_environment
  OMPI_MCA_rmaps_base_oversubscribe=1
  PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  OMPI_ALLOW_RUN_AS_ROOT=1
  OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)

# What to put behind the name of a program of fpt_fortran_test that must be there
set(fpt_form _checked)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(fpt_form "")
endif()

macro(_fpt_parse)
  cmake_parse_arguments(PARSE_ARGV 1 ARG
    "FTORCH;PLAIN;SLOW;UNCHECKED;WILL_FAIL"
    "PASS_REGULAR_EXPRESSION;PROGRAM;TIMEOUT;WORKING_DIRECTORY"
    "ARGS;COMMAND;ENVIRONMENT;FIXTURES;LABELS;LINK;LOCK;OPTIMIZE;SLOW_FLAGS;SOURCES")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: what is ${ARG_UNPARSED_ARGUMENTS}?")
  endif()
endmacro()

# Reads the options that _fpt_parse left in the scope of the caller.
function(_fpt_register name)
  if(ARG_SLOW)
    list(APPEND ARG_LABELS slow)
  endif()
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "${fpt_test_environment};${ARG_ENVIRONMENT}"
    FIXTURES_REQUIRED "${ARG_FIXTURES}"
    LABELS "${ARG_LABELS}"
    RESOURCE_LOCK "${ARG_LOCK}"
    SKIP_RETURN_CODE 77 # what it needs is not there
    TIMEOUT ${fpt_test_timeout}
    WILL_FAIL ${ARG_WILL_FAIL})
  foreach(property IN ITEMS TIMEOUT PASS_REGULAR_EXPRESSION WORKING_DIRECTORY)
    if(ARG_${property})
      set_tests_properties(${name} PROPERTIES ${property} "${ARG_${property}}")
    endif()
  endforeach()
  if(ARG_TIMEOUT) # what takes longest starts first, so that no processor is idle at the end
    set_tests_properties(${name} PROPERTIES COST ${ARG_TIMEOUT})
  endif()
endfunction()

function(fpt_add_test name)
  _fpt_parse()
  _fpt_register(${name} ${ARG_COMMAND})
endfunction()

function(fpt_fortran_test name)
  _fpt_parse()
  list(APPEND ARG_LABELS fortran)
  list(APPEND ARG_LOCK ${name}) # all runs of a program write the same files
  if(NOT ARG_SOURCES)
    set(ARG_SOURCES ${name}.f90)
    if(EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${name}.fypp")
      _fpt_generate(${name})
      set(ARG_SOURCES "${CMAKE_CURRENT_BINARY_DIR}/${name}.f90")
    endif()
  endif()
  if(ARG_UNCHECKED OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(ARG_PLAIN ON)
  else()
    _fpt_fortran_form(checked "${ARG_SLOW}")
  endif()
  if(NOT ARG_OPTIMIZE AND (ARG_SLOW OR NOT ARG_PLAIN))
    _fpt_fortran_form("" ON)
  elseif(NOT ARG_OPTIMIZE)
    _fpt_fortran_form("" OFF)
  endif()
  foreach(flags IN LISTS ARG_OPTIMIZE)
    _fpt_fortran_form("${flags}" "${ARG_SLOW}")
  endforeach()
  foreach(flags IN LISTS ARG_SLOW_FLAGS)
    _fpt_fortran_form("${flags}" ON)
  endforeach()
endfunction()

function(_fpt_generate name)
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}.f90")
  set(template "${CMAKE_CURRENT_SOURCE_DIR}/${name}.fypp")
  file(GLOB pieces CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fortran/*.fypp")
  add_custom_command(
    OUTPUT "${source}"
    COMMAND Python::Interpreter -m fypp -I "${PROJECT_SOURCE_DIR}/fortran" "${template}" "${source}"
    DEPENDS "${template}" ${pieces}
    COMMENT "Generating ${name}.f90"
    VERBATIM)
  add_custom_target(${name}_source DEPENDS "${source}") # generates it once for all forms of the program
endfunction()

# A form of the program of fpt_fortran_test, by its flags or as `checked`, and its run
function(_fpt_fortran_form flags is_slow)
  if(is_slow AND NOT FTN_PYTORCH_SLOW_TESTS)
    return()
  endif()
  if("-flto" IN_LIST flags AND NOT fpt_have_lto)
    message(STATUS "${name}: no link-time optimisation with these compilers, ${flags} is left out")
    return()
  endif()
  string(REGEX REPLACE "[^A-Za-z0-9]+" "_" suffix "${flags}")
  if(flags STREQUAL "checked")
    set(suffix _checked)
  endif()
  set(ARG_SLOW "${is_slow}")
  _fpt_fortran_program(${name}${suffix} "${flags}")
  if(TARGET ${name}_source)
    add_dependencies(${name}${suffix} ${name}_source)
  endif()
  set_target_properties(${name}${suffix} PROPERTIES FPT_IS_SLOW "${is_slow}")
  _fpt_register(${name}${suffix} ${name}${suffix} ${ARG_ARGS})
endfunction()

function(fpt_fortran_case name)
  _fpt_parse()
  list(APPEND ARG_LABELS fortran)
  list(APPEND ARG_LOCK ${ARG_PROGRAM}) # all runs of a program write the same files
  if(NOT ARG_COMMAND)
    set(ARG_COMMAND "<program>" ${ARG_ARGS})
  endif()
  set(is_slow "${ARG_SLOW}")
  foreach(form IN ITEMS "" _checked)
    if(TARGET ${ARG_PROGRAM}${form})
      get_target_property(ARG_SLOW ${ARG_PROGRAM}${form} FPT_IS_SLOW)
      if(is_slow)
        set(ARG_SLOW ON)
      endif()
      string(REPLACE "<program>" "$<TARGET_FILE:${ARG_PROGRAM}${form}>" command "${ARG_COMMAND}")
      _fpt_register(${name}${form} ${command})
    endif()
  endforeach()
endfunction()

function(fpt_example_test name)
  _fpt_parse()
  list(APPEND ARG_LABELS example)
  if(NOT ARG_COMMAND)
    set(ARG_COMMAND ${name})
  endif()
  _fpt_register(example_${name} ${ARG_COMMAND} ${ARG_ARGS})
endfunction()

if("Fortran" IN_LIST languages)
  include(CheckIPOSupported)
  check_ipo_supported(RESULT fpt_have_lto OUTPUT ignored LANGUAGES C Fortran)
  # Each language is checked alone, but a library has both, and GCC reads the intermediate code of its own version only.
  if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_Fortran_COMPILER_ID STREQUAL "GNU"
     AND NOT CMAKE_C_COMPILER_VERSION VERSION_EQUAL CMAKE_Fortran_COMPILER_VERSION)
    set(fpt_have_lto FALSE)
  endif()
endif()

# gfortran may put addresses into read-only memory, as GNU ld would say in a warning only; some systems do not start such
# programs.
include(CheckLinkerFlag)
list(GET languages 0 fpt_linker_language)
check_linker_flag(${fpt_linker_language} "LINKER:-z,text" FPT_HAVE_LINKER_TEXT)
if(FPT_HAVE_LINKER_TEXT)
  add_link_options("LINKER:-z,text")
  # GCC's own table of what is offloaded has such addresses.
  foreach(fpt_runtime IN ITEMS openacc openmp)
    if(TARGET ftn_pytorch_${fpt_runtime})
      target_link_options(ftn_pytorch_${fpt_runtime} INTERFACE "LINKER:-z,notext")
    endif()
  endforeach()
endif()

# flags: those of a compiler, or `checked`
function(_fpt_fortran_program name flags)
  set(library ftn_pytorch::ftn_pytorch)
  set(has_lto OFF)
  if(flags STREQUAL "checked")
    set(library ftn_pytorch_fortran_checked)
    separate_arguments(flags UNIX_COMMAND "-O0 ${CMAKE_Fortran_FLAGS_DEBUG}")
  elseif("-flto" IN_LIST flags)
    set(library ftn_pytorch_fortran_lto)
    set(has_lto ON)
    list(REMOVE_ITEM flags -flto)
  endif()
  if(NOT TARGET ${library})
    ftn_pytorch_add_fortran(${library} CORE ftn_pytorch_core SOURCES ${FTN_PYTORCH_FORTRAN_SOURCES})
    add_dependencies(${library} ftn_pytorch_fortran_sources)
    target_compile_options(${library} PRIVATE "$<$<COMPILE_LANGUAGE:Fortran>:${flags}>")
  endif()
  if(ARG_FTORCH)
    if(NOT library STREQUAL "ftn_pytorch::ftn_pytorch" AND NOT TARGET ${library}_ftorch)
      ftn_pytorch_add_ftorch(${library}_ftorch ON ${library} SOURCES ${FTN_PYTORCH_FTORCH_SOURCES})
      add_dependencies(${library}_ftorch ftn_pytorch_ftorch_sources)
      target_compile_options(${library}_ftorch PRIVATE "$<$<COMPILE_LANGUAGE:Fortran>:${flags}>")
    endif()
    string(REPLACE "ftn_pytorch::ftn_pytorch_ftorch" "FTorch::ftorch" library "${library}_ftorch")
  endif()
  add_executable(${name} ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/tests/fortran/check.f90")
  target_compile_options(${name} PRIVATE ${flags})
  target_link_options(${name} PRIVATE ${flags})
  target_link_libraries(${name} PRIVATE ${library} ${ARG_LINK})
  set_target_properties(${name} PROPERTIES
    Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${name}_modules"
    Fortran_PREPROCESS OFF)
  if(has_lto)
    set_target_properties(${library} ${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION ON)
    target_link_options(${name} PRIVATE $<$<LINK_LANG_AND_ID:Fortran,GNU>:-Werror=lto-type-mismatch>)
  endif()
endfunction()
