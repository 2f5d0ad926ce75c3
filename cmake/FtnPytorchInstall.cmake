# SPDX-License-Identifier: MIT
# A relocatable installation: only Python and libtorch are found by absolute paths. A wheel has the same layout below its
# Python package, which scikit-build-core installs, and nothing that pip does itself.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ftn_pytorch")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(fortran_dir "${FTN_PYTORCH_SHARE_DIR}/fortran")
set(doc_dir "${CMAKE_INSTALL_DATAROOTDIR}/doc/ftn_pytorch")
file(RELATIVE_PATH python_dir "${install_root}${CMAKE_INSTALL_BINDIR}" "${install_root}${FTN_PYTORCH_SHARE_DIR}/python")

install(TARGETS ftn_pytorch_core EXPORT ftn_pytorch-targets)
install(TARGETS ftn_pytorch_python LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS ftn_pytorch_node RUNTIME DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/ftn_pytorch")
if(TARGET ftn_pytorch_direct)
  install(TARGETS ${FTN_PYTORCH_TORCH_LIBRARIES} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(FILES "${PROJECT_BINARY_DIR}${install_root}${CMAKE_INSTALL_LIBDIR}/libftn_pytorch_direct.torch"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(FILES src/ftn_pytorch.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES ${FTN_PYTORCH_FORTRAN_SOURCES} DESTINATION "${fortran_dir}")
install(DIRECTORY examples DESTINATION "${FTN_PYTORCH_SHARE_DIR}"
  PATTERN __pycache__ EXCLUDE
  REGEX "/examples/CMakeLists\\.txt$" EXCLUDE)
install(DIRECTORY hosts DESTINATION "${FTN_PYTORCH_SHARE_DIR}" PATTERN __pycache__ EXCLUDE)
if(FTN_PYTORCH_WHEEL)
  # python -m ftn_pytorch build-direct
  set(source_dir "${FTN_PYTORCH_SHARE_DIR}/source")
  install(FILES CMakeLists.txt DESTINATION "${source_dir}")
  install(FILES cmake/FtnPytorchBuildTypes.cmake cmake/FtnPytorchPython.cmake cmake/FtnPytorchTorch.cmake
    DESTINATION "${source_dir}/cmake")
  install(DIRECTORY src DESTINATION "${source_dir}" PATTERN __pycache__ EXCLUDE)
  # In an active environment CMake finds the package without options, because it searches the prefixes of PATH.
  install(FILES cmake/wheel/ftn_pytorch-config.cmake cmake/wheel/ftn_pytorch-config-version.cmake
    DESTINATION "${SKBUILD_DATA_DIR}/lib/cmake/ftn_pytorch")
else()
  install(DIRECTORY python/ftn_pytorch DESTINATION "${FTN_PYTORCH_SHARE_DIR}/python"
    PATTERN __pycache__ EXCLUDE)
  # Otherwise each rank of a job compiles the package in each start, or many write bytecode at once. Nothing compares the
  # bytecode with its source, so a copy with other times of files is as good.
  if(IS_ABSOLUTE "${FTN_PYTORCH_SHARE_DIR}")
    set(share_dir "${FTN_PYTORCH_SHARE_DIR}")
  else()
    set(share_dir "\${CMAKE_INSTALL_PREFIX}/${FTN_PYTORCH_SHARE_DIR}")
  endif()
  install(CODE "
    execute_process(
      COMMAND \"${Python_EXECUTABLE}\" -m compileall -q --invalidation-mode unchecked-hash
        -x /commands/project/ \"\$ENV{DESTDIR}${share_dir}/python/ftn_pytorch\"
      RESULT_VARIABLE failed)
    if(failed)
      message(WARNING \"The Python files could not be compiled: programs will start more slowly.\")
    endif()")
  configure_file(cmake/ftn_pytorch.in "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch" @ONLY)
  install(PROGRAMS "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch" DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES CHANGELOG.md CITATION.cff LICENSE README.md SECURITY.md DESTINATION "${doc_dir}")
  install(DIRECTORY docs DESTINATION "${doc_dir}" PATTERN site EXCLUDE)
endif()

set(fortran_files)
foreach(source IN LISTS FTN_PYTORCH_FORTRAN_SOURCES)
  get_filename_component(file "${source}" NAME)
  list(APPEND fortran_files "${file}")
endforeach()

# CMake
install(EXPORT ftn_pytorch-targets NAMESPACE ftn_pytorch:: DESTINATION "${package_dir}")
configure_package_config_file(src/ftn_pytorch-config.cmake.in "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch-config.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS fortran_dir
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/ftn_pytorch-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(
  FILES
    "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch-config.cmake"
    "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch-config-version.cmake"
    cmake/FtnPytorchFortran.cmake
    cmake/FtnPytorchProgram.cmake
  DESTINATION "${package_dir}")
install(DIRECTORY cmake/modules cmake/probe DESTINATION "${package_dir}")

# Files of a folder with sources, as pkg-config is to tell them: <prefix>_c_sources, <prefix>_gfortran_sources with modules
# for arrays of any rank, <prefix>_f90_sources with explicit ranks in their place
function(_fpt_pkgconfig_sources prefix)
  set(c ${ARGN})
  list(FILTER c INCLUDE REGEX "\\.c$")
  set(f90 ${ARGN})
  list(FILTER f90 INCLUDE REGEX "\\.f90$")
  list(REMOVE_ITEM f90 fpt_arg_ranks.f90)
  set(gfortran ${f90})
  list(FILTER gfortran EXCLUDE REGEX "_ranks\\.f90$")
  foreach(file IN LISTS f90)
    string(REGEX REPLACE "_ranks\\.f90$" ".f90" other "${file}")
    if(NOT other STREQUAL file)
      list(REMOVE_ITEM f90 "${other}")
    endif()
  endforeach()
  foreach(list IN ITEMS c f90 gfortran)
    list(TRANSFORM ${list} PREPEND "\${fortran_dir}/")
    list(JOIN ${list} " " files)
    set(${prefix}_${list}_sources "${files}" PARENT_SCOPE)
  endforeach()
endfunction()

# pkg-config
_fpt_pkgconfig_sources(pkgconfig ${fortran_files})
list(JOIN FTN_PYTORCH_GNU_FORTRAN_FLAGS " " FTN_PYTORCH_GNU_FORTRAN_FLAGS)
file(RELATIVE_PATH pkgconfig_prefix "${install_root}${pkgconfig_dir}" "/")
configure_file(src/ftn_pytorch.pc.in "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch.pc" DESTINATION "${pkgconfig_dir}")

# FTorch: a folder of its own, which nobody finds by the prefix. So a real FTorch in the same prefix is never hidden.
if(FTN_PYTORCH_FTORCH)
  set(ftorch_dir "${FTN_PYTORCH_SHARE_DIR}/ftorch")
  set(ftorch_fortran_dir "${ftorch_dir}/fortran")
  install(FILES ${FTN_PYTORCH_FTORCH_SOURCES} DESTINATION "${ftorch_fortran_dir}")
  set(ftorch_files)
  foreach(source IN LISTS FTN_PYTORCH_FTORCH_SOURCES)
    get_filename_component(file "${source}" NAME)
    list(APPEND ftorch_files "${file}")
  endforeach()
  configure_package_config_file(src/FTorchConfig.cmake.in "${PROJECT_BINARY_DIR}/cmake/FTorchConfig.cmake"
    INSTALL_DESTINATION "${ftorch_dir}/lib/cmake/FTorch"
    PATH_VARS ftorch_fortran_dir package_dir
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/cmake/FTorchConfigVersion.cmake"
    VERSION ${FTN_PYTORCH_FTORCH_VERSION} COMPATIBILITY SameMajorVersion)
  install(
    FILES "${PROJECT_BINARY_DIR}/cmake/FTorchConfig.cmake" "${PROJECT_BINARY_DIR}/cmake/FTorchConfigVersion.cmake"
    DESTINATION "${ftorch_dir}/lib/cmake/FTorch")
  _fpt_pkgconfig_sources(ftorch ${ftorch_files})
  file(RELATIVE_PATH ftorch_pkgconfig_prefix "${install_root}${ftorch_dir}/lib/pkgconfig" "/")
  configure_file(src/ftorch.pc.in "${PROJECT_BINARY_DIR}/cmake/ftorch.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/cmake/ftorch.pc" DESTINATION "${ftorch_dir}/lib/pkgconfig")
endif()
