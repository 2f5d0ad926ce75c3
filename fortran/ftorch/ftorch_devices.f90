! SPDX-License-Identifier: MIT
!> Numbers that FTorch gives to kinds of devices. torch calls the devices of HIP cuda, too.
module ftorch_devices
   use, intrinsic :: iso_c_binding, only : c_int
   implicit none
   private

   !> Kinds of devices
   integer(c_int), parameter, public :: torch_kCPU = 0, torch_kCUDA = 1, torch_kHIP = 1, &
      torch_kXPU = 12, torch_kMPS = 13
end module ftorch_devices
