# SPDX-License-Identifier: MIT
# Modules of the installed package are compiled once for a compiler and its flags, and not in each project: a build keeps
# their objects and module files in a cache, from which the next project takes them. The target stays what it is, a library
# with modules, whose objects come from there.
#
#   ftn_pytorch_keep_modules(<target> <file that it is compiled of, or modules that it uses>...)

set(FTN_PYTORCH_MODULES_CACHE "" CACHE STRING
  "Folder for compiled modules of ftn_pytorch, empty: ftn_pytorch/modules in XDG_CACHE_HOME or ~/.cache; OFF: none")
mark_as_advanced(FTN_PYTORCH_MODULES_CACHE)

function(ftn_pytorch_keep_modules target)
  # in the end, when the project has said with which flags it is compiled
  cmake_language(EVAL CODE "cmake_language(DEFER CALL _ftn_pytorch_keep_modules [[${target}]] [[${ARGN}]])")
endfunction()

# The folder of the cache; empty where there is none
function(_ftn_pytorch_modules_cache out)
  set(folder "${FTN_PYTORCH_MODULES_CACHE}")
  if(folder STREQUAL "" AND IS_ABSOLUTE "$ENV{XDG_CACHE_HOME}")
    set(folder "$ENV{XDG_CACHE_HOME}/ftn_pytorch/modules")
  elseif(folder STREQUAL "" AND IS_ABSOLUTE "$ENV{HOME}")
    set(folder "$ENV{HOME}/.cache/ftn_pytorch/modules")
  elseif(NOT folder)
    set(folder "") # OFF
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# All that objects and module files of a target depend on, as a text; empty where they belong to one project alone.
function(_ftn_pytorch_key target out)
  set(${out} "" PARENT_SCOPE)
  if(CMAKE_CONFIGURATION_TYPES OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  cmake_host_system_information(RESULT processor QUERY PROCESSOR_DESCRIPTION) # -march=native
  set(key "ftn_pytorch ${ftn_pytorch_VERSION}, ${CMAKE_SYSTEM_PROCESSOR}, ${processor} $ENV{CRAY_CPU_TARGET}\n")
  foreach(language IN ITEMS Fortran C)
    get_filename_component(compiler "${CMAKE_${language}_COMPILER}" REALPATH) # f95 is gfortran
    string(APPEND key "${language}: ${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION}, "
      "${compiler} ${CMAKE_${language}_COMPILER_ARG1}, ${CMAKE_${language}_FLAGS} "
      "${CMAKE_${language}_FLAGS_${type}}\n")
  endforeach()
  foreach(property IN ITEMS COMPILE_DEFINITIONS COMPILE_FLAGS COMPILE_OPTIONS C_VISIBILITY_PRESET Fortran_FORMAT
      Fortran_PREPROCESS INTERPROCEDURAL_OPTIMIZATION INTERPROCEDURAL_OPTIMIZATION_${type} POSITION_INDEPENDENT_CODE)
    get_target_property(value ${target} ${property})
    string(APPEND key "${property}: ${value}\n")
  endforeach()
  # folders of the project; files with numbers of calls, which lie beside the objects; what other targets say
  foreach(own IN ITEMS "${CMAKE_BINARY_DIR}" "${CMAKE_SOURCE_DIR}" "coverage" "profile" "$<TARGET" "$<GENEX")
    string(FIND "${key}" "${own}" place)
    if(NOT place EQUAL -1)
      return()
    endif()
  endforeach()
  list(SORT ARGN)
  foreach(source IN LISTS ARGN)
    get_filename_component(name "${source}" NAME)
    file(SHA256 "${source}" hash)
    string(APPEND key "${name} ${hash}\n")
  endforeach()
  get_target_property(compiled ${target} SOURCES)
  list(TRANSFORM compiled REPLACE ".*/" "")
  string(APPEND key "compiled: ${compiled}\n")
  set(${out} "${key}" PARENT_SCOPE)
endfunction()

function(_ftn_pytorch_keep_modules target sources)
  _ftn_pytorch_modules_cache(cache)
  _ftn_pytorch_key(${target} key ${sources})
  if(NOT cache OR NOT key)
    return()
  endif()
  string(SHA256 name "${key}")
  string(SUBSTRING "${name}" 0 24 name)
  set(entry "${cache}/${name}")
  get_target_property(modules ${target} Fortran_MODULE_DIRECTORY)
  set(own "${modules}_kept") # a copy, since others may remove the cache
  set(kept "")
  foreach(place IN ITEMS "${own}" "${entry}")
    if(NOT kept AND EXISTS "${place}/key.txt")
      file(READ "${place}/key.txt" text)
      if(text STREQUAL key)
        set(kept "${place}")
      endif()
    endif()
  endforeach()
  # what a build has compiled it goes on with, and compiles nothing of the project once more
  set(compiled "FTN_PYTORCH_COMPILED_${target}")
  if(kept AND NOT "${${compiled}}" STREQUAL name)
    if(kept STREQUAL entry)
      file(REMOVE_RECURSE "${own}")
      file(COPY "${entry}/" DESTINATION "${own}")
    endif()
    file(GLOB objects "${own}/objects/*")
    set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON)
    set_target_properties(${target} PROPERTIES SOURCES "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/kept.f90;${objects}")
    target_include_directories(${target} PUBLIC "$<$<COMPILE_LANGUAGE:Fortran>:${own}/modules>")
    message(STATUS "Modules of ${target}: compiled before, from ${cache}")
  else()
    set(${compiled} ${name} CACHE INTERNAL "Key of the modules that are compiled here")
    file(WRITE "${own}.txt" "${key}")
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND "${CMAKE_COMMAND}" "-DENTRY=${entry}" "-DKEY=${own}.txt" "-DMODULES=${modules}"
        "-DOBJECTS=$<TARGET_OBJECTS:${target}>" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/keep.cmake"
      VERBATIM)
  endif()
endfunction()
