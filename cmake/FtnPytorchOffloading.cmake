# SPDX-License-Identifier: MIT
# Programs of this repository whose arrays are on a GPU link the target ftn_pytorch_openacc or ftn_pytorch_openmp. The
# first is there if the Fortran compiler takes FTN_PYTORCH_OFFLOAD_FLAGS, what it needs for OpenACC and to produce code
# for a GPU, such as
#   -fopenacc -foffload=nvptx-none -foffload-options=nvptx-none="-misa=sm_80 -lm"
# the second if it also takes them with -fopenmp in place of -fopenacc.

include(CheckFortranSourceCompiles)
set(FTN_PYTORCH_OFFLOAD_FLAGS "-fopenacc" CACHE STRING "Flags of the Fortran compiler for OpenACC on a GPU")

function(fpt_find_offloading target flags module count loop)
  set(CMAKE_REQUIRED_FLAGS "${flags}")
  string(MAKE_C_IDENTIFIER "FTN_PYTORCH_HAVE_OFFLOADING_${flags}" have) # each has its answer
  check_fortran_source_compiles("
program probe
   use ${module}
   real :: x(2)
   !$${loop}
   do i = 1, 2
      x(i) = i
   end do
   if (${count} < 0) print *, x
end program probe
" ${have} SRC_EXT f90)
  if(${have})
    add_library(${target} INTERFACE)
    separate_arguments(options UNIX_COMMAND "${flags}")
    target_compile_options(${target} INTERFACE ${options})
    target_link_options(${target} INTERFACE ${options})
  endif()
endfunction()

fpt_find_offloading(ftn_pytorch_openacc "${FTN_PYTORCH_OFFLOAD_FLAGS}"
  openacc "acc_get_num_devices(acc_device_nvidia)" "acc parallel loop copyout(x)")
if("${FTN_PYTORCH_OFFLOAD_FLAGS}" MATCHES "-fopenacc")
  string(REPLACE "-fopenacc" "-fopenmp" flags_of_openmp "${FTN_PYTORCH_OFFLOAD_FLAGS}")
  fpt_find_offloading(ftn_pytorch_openmp "${flags_of_openmp}"
    omp_lib "omp_get_num_devices()" "omp target teams distribute parallel do map(from: x)")
endif()
