# SPDX-License-Identifier: MIT
# Programs of this repository whose arrays are on a GPU link the target ftn_pytorch_openacc. It is there if the Fortran
# compiler takes FTN_PYTORCH_OFFLOAD_FLAGS, what it needs for OpenACC and to produce code for a GPU, such as
#   -fopenacc -foffload=nvptx-none -foffload-options=nvptx-none="-misa=sm_80 -lm"

include(CheckFortranSourceCompiles)
set(FTN_PYTORCH_OFFLOAD_FLAGS "-fopenacc" CACHE STRING "Flags of the Fortran compiler for OpenACC on a GPU")
set(CMAKE_REQUIRED_FLAGS "${FTN_PYTORCH_OFFLOAD_FLAGS}")
string(MAKE_C_IDENTIFIER "FTN_PYTORCH_HAVE_OPENACC_${FTN_PYTORCH_OFFLOAD_FLAGS}" have_openacc) # each has its answer
check_fortran_source_compiles("
program probe
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   real :: x(2)
   !$acc parallel loop copyout(x)
   do i = 1, 2
      x(i) = i
   end do
   if (acc_get_num_devices(acc_device_nvidia) < 0) print *, x
end program probe
" ${have_openacc} SRC_EXT f90)
unset(CMAKE_REQUIRED_FLAGS)
if(${have_openacc})
  add_library(ftn_pytorch_openacc INTERFACE)
  separate_arguments(offload_flags UNIX_COMMAND "${FTN_PYTORCH_OFFLOAD_FLAGS}")
  target_compile_options(ftn_pytorch_openacc INTERFACE ${offload_flags})
  target_link_options(ftn_pytorch_openacc INTERFACE ${offload_flags})
endif()
