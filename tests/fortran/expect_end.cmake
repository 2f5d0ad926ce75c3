# SPDX-License-Identifier: MIT
# cmake -DCODE=<exit code, or name of a signal> -DWANTED=<regular expression> -P expect_end.cmake -- <command>...
# A command must end so, and write that.
set(command)
set(found OFF)
foreach(i RANGE 1 ${CMAKE_ARGC})
  if(found AND DEFINED CMAKE_ARGV${i})
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(found ON)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 500)
if(NOT code MATCHES "^(${CODE})$" OR NOT output MATCHES "${WANTED}")
  message(FATAL_ERROR "ended with ${code} instead of ${CODE}, and wrote:\n${output}")
endif()
