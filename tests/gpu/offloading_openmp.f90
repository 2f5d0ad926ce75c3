! SPDX-License-Identifier: MIT
!> What the tests on a GPU ask the runtime of OpenMP.
module offloading
   use, intrinsic :: iso_c_binding, only : c_ptr
   use, intrinsic :: iso_fortran_env, only : int64
   use omp_lib, only : omp_get_num_devices
   use check, only : address_of
   implicit none
   private

   public :: number_of_gpus, device_address

contains

   !> GPUs that regions can run on; 0 where this program was not compiled for one
   function number_of_gpus() result(count)
      integer :: count

      count = omp_get_num_devices()
   end function number_of_gpus

   !> Where the runtime keeps an array on the GPU
   function device_address(host) result(address)
      !> Address of the array on the host
      type(c_ptr), intent(in) :: host
      integer(int64) :: address

      type(c_ptr) :: there

      there = host
      !$omp target data use_device_ptr(there)
      address = address_of(there)
      !$omp end target data
   end function device_address
end module offloading
