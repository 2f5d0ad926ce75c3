# SPDX-License-Identifier: MIT
# Run PROGRAM with ARGUMENT: it must end with exit code 1 and say WANTED on standard error.
execute_process(COMMAND "${PROGRAM}" "${ARGUMENT}" RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT code EQUAL 1)
  message(FATAL_ERROR "exit code ${code} instead of 1\n${output}${errors}")
endif()
if(NOT errors MATCHES "${WANTED}" OR output MATCHES "went on")
  message(FATAL_ERROR "no '${WANTED}' in\n${output}${errors}")
endif()
