! SPDX-License-Identifier: MIT
!> What the tests on a GPU share: the question whether there is one, addresses there, and warnings.
module gpu
   use, intrinsic :: iso_c_binding, only : c_ptr
   use, intrinsic :: iso_fortran_env, only : int64
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   use check, only : address_of
   use ftn_pytorch, only : ftn_pytorch_on_warning
   implicit none
   private

   public :: require_gpu, device_address, count_warnings, warnings_with

   interface
      !> Of OpenACC; gfortran 12 has it for C only
      function acc_deviceptr(host) bind(c) result(device)
         import :: c_ptr
         implicit none
         type(c_ptr), value :: host
         type(c_ptr) :: device
      end function acc_deviceptr
   end interface

   !> Texts that have arrived, a line each
   character(:), allocatable, save :: texts

contains

   !> End with exit code 77, which ctest counts as skipped, where there is no GPU
   subroutine require_gpu()
      if (acc_get_num_devices(acc_device_nvidia) > 0) return
      print "(a)", "skipped: OpenACC has no NVIDIA GPU here, or this program was not compiled for one"
      stop 77, quiet=.true.
   end subroutine require_gpu

   !> Where OpenACC keeps an array on the GPU
   function device_address(host) result(address)
      !> Address of the array on the host
      type(c_ptr), intent(in) :: host
      integer(int64) :: address

      address = address_of(acc_deviceptr(host))
   end function device_address

   !> Keep warnings from now on, for warnings_with
   subroutine count_warnings()
      texts = ""
      call ftn_pytorch_on_warning(keep)
   end subroutine count_warnings

   subroutine keep(text)
      character(*), intent(in) :: text

      texts = texts // text // new_line("a")
   end subroutine keep

   !> How many warnings contain a text that each of them has once
   function warnings_with(part) result(count)
      character(*), intent(in) :: part
      integer :: count

      integer :: first, found

      count = 0
      first = 1
      do
         found = index(texts(first:), part)
         if (found == 0) exit
         count = count + 1
         first = first + found
      end do
   end function warnings_with
end module gpu
