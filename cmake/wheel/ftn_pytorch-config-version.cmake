# SPDX-License-Identifier: MIT
# The version of the package among those of Python; its folder is left in ftn_pytorch_package_file for the file beside this.
string(REGEX REPLACE "([][*?])" "[\\1]" ftn_pytorch_here "${CMAKE_CURRENT_LIST_DIR}") # a name, and no pattern
file(GLOB ftn_pytorch_package_file
  "${ftn_pytorch_here}/../../python3*/*-packages/ftn_pytorch/lib/cmake/ftn_pytorch/ftn_pytorch-config.cmake"
  "${ftn_pytorch_here}/../../../lib64/python3*/*-packages/ftn_pytorch/lib/cmake/ftn_pytorch/ftn_pytorch-config.cmake")
if(ftn_pytorch_package_file)
  list(GET ftn_pytorch_package_file 0 ftn_pytorch_package_file)
  get_filename_component(ftn_pytorch_package_folder "${ftn_pytorch_package_file}" DIRECTORY)
  include("${ftn_pytorch_package_folder}/ftn_pytorch-config-version.cmake")
endif()
