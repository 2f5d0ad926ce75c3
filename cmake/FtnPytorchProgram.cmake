# SPDX-License-Identifier: MIT
# A program that uses ftn_pytorch. The installed package has this file, for projects of users and for the examples.
#
#   ftn_pytorch_add_program(<name> [MPI] SOURCES <file>... [LINK <library>...])
#
# MPI: links the MPI of the Fortran compiler, which must have the module mpi_f08. Where there is none, a project of its own
# cannot be configured, and a part of another project goes on without this target.

function(ftn_pytorch_add_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "MPI" "" "LINK;SOURCES")
  if(NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ftn_pytorch_add_program(${name} [MPI] SOURCES <file>... [LINK <library>...]) was given ${ARGN}")
  endif()
  if(ARG_MPI)
    find_package(MPI QUIET COMPONENTS Fortran)
    if(NOT MPI_Fortran_FOUND OR NOT MPI_Fortran_HAVE_F08_MODULE)
      set(kind STATUS)
      if(CMAKE_SOURCE_DIR STREQUAL PROJECT_SOURCE_DIR)
        set(kind FATAL_ERROR)
      endif()
      message(${kind} "${name} is not built: no MPI with module mpi_f08 for this compiler (Debian: libopenmpi-dev)")
      return()
    endif()
    list(APPEND ARG_LINK MPI::MPI_Fortran)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ftn_pytorch::ftn_pytorch ${ARG_LINK})
endfunction()
