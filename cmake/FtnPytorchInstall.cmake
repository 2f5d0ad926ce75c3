# SPDX-License-Identifier: MIT
# A relocatable installation: nothing in it but libpython is found by an absolute path.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/ftn_pytorch")
set(pkgconfig_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
set(fortran_dir "${FTN_PYTORCH_SHARE_DIR}/fortran")

install(TARGETS ftn_pytorch_core EXPORT ftn_pytorch-targets)
if(TARGET ftn_pytorch_direct)
  install(TARGETS ftn_pytorch_direct LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(FILES src/ftn_pytorch.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES ${FTN_PYTORCH_FORTRAN_SOURCES} DESTINATION "${fortran_dir}")
install(DIRECTORY python/ftn_pytorch DESTINATION "${FTN_PYTORCH_SHARE_DIR}/python"
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY examples DESTINATION "${FTN_PYTORCH_SHARE_DIR}"
  PATTERN __pycache__ EXCLUDE
  REGEX "/examples/CMakeLists\\.txt$" EXCLUDE)

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
  DESTINATION "${package_dir}")
install(DIRECTORY cmake/probe DESTINATION "${package_dir}")

# pkg-config
set(modules ${fortran_files})
list(REMOVE_ITEM modules fpt_arg_ranks.f90 fpt_descriptor.c)
list(TRANSFORM modules PREPEND "\${fortran_dir}/")
list(JOIN modules " " pkgconfig_modules)
file(RELATIVE_PATH pkgconfig_prefix "/${pkgconfig_dir}" "/")
configure_file(src/ftn_pytorch.pc.in "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/cmake/ftn_pytorch.pc" DESTINATION "${pkgconfig_dir}")
