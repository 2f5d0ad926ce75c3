# SPDX-License-Identifier: MIT
# After a build of modules: keep its objects and module files for the next project. A script of CMake, which gets
# ENTRY, the folder for them, KEY, a file with what they depend on, MODULES, the folder of the module files, and OBJECTS.
#
# A folder gets its name when all is in it. Of two builds at once, the first one names its own. Nothing that fails here is a
# failure of the build: there may be no room, or no right to write.
if(NOT EXISTS "${ENTRY}")
  string(RANDOM LENGTH 12 part)
  set(part "${ENTRY}.${part}.part")
  set(copy "${CMAKE_COMMAND}" -E copy)
  file(GLOB modules "${MODULES}/*.mod" "${MODULES}/*.smod")
  execute_process(COMMAND "${CMAKE_COMMAND}" -E make_directory "${part}/objects" "${part}/modules"
    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT failed)
    execute_process(COMMAND ${copy} ${OBJECTS} "${part}/objects" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT failed AND modules)
    execute_process(COMMAND ${copy} ${modules} "${part}/modules" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT failed)
    execute_process(COMMAND ${copy} "${KEY}" "${part}/key.txt" RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  endif()
  if(NOT failed)
    execute_process(COMMAND "${CMAKE_COMMAND}" -E rename "${part}" "${ENTRY}" OUTPUT_QUIET ERROR_QUIET)
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" -E rm -rf "${part}" OUTPUT_QUIET ERROR_QUIET)
endif()
