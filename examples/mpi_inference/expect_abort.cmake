# SPDX-License-Identifier: MIT
# cmake -P expect_abort.cmake -- <command>...
# Run the command, in which one rank fails: it must end by itself and soon, with an exit code that is not zero, and with
# the reason on the screen.

set(command)
set(found OFF)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(found)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(found ON)
  endif()
endforeach()

execute_process(COMMAND ${command} TIMEOUT 90
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
message("${output}")
if(NOT result MATCHES "^[0-9]+$")
  message(FATAL_ERROR "the ranks did not end: ${result}")
elseif(result EQUAL 0)
  message(FATAL_ERROR "one rank fails, and the exit code is 0")
elseif(NOT output MATCHES "rank 2 fails.*ValueError: 1 of [0-9]+ columns")
  message(FATAL_ERROR "the reason is not on the screen")
endif()
message(STATUS "all ranks ended with exit code ${result}")
