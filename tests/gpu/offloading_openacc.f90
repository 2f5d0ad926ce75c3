! SPDX-License-Identifier: MIT
!> What the tests on a GPU ask the runtime of OpenACC.
module offloading
   use, intrinsic :: iso_c_binding, only : c_ptr
   use, intrinsic :: iso_fortran_env, only : int64
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   use check, only : address_of
   implicit none
   private

   public :: number_of_gpus, device_address

   interface
      !> Of OpenACC; gfortran 12 has it for C only
      function acc_deviceptr(host) bind(c) result(device)
         import :: c_ptr
         implicit none
         type(c_ptr), value :: host
         type(c_ptr) :: device
      end function acc_deviceptr
   end interface

contains

   !> GPUs that regions can run on; 0 where this program was not compiled for one
   function number_of_gpus() result(count)
      integer :: count

      count = acc_get_num_devices(acc_device_nvidia)
   end function number_of_gpus

   !> Where the runtime keeps an array on the GPU
   function device_address(host) result(address)
      !> Address of the array on the host
      type(c_ptr), intent(in) :: host
      integer(int64) :: address

      address = address_of(acc_deviceptr(host))
   end function device_address
end module offloading
