! SPDX-License-Identifier: MIT
!> Numbers that FTorch gives to element types and to reductions of losses.
module ftorch_types
   use, intrinsic :: iso_c_binding, only : c_int
   use, intrinsic :: iso_fortran_env, only : int32
   implicit none
   private

   !> Element types
   integer(c_int), parameter, public :: torch_kUInt8 = 0, torch_kInt8 = 1, torch_kInt16 = 2, torch_kInt32 = 3, &
      torch_kInt64 = 4, torch_kFloat16 = 5, torch_kFloat32 = 6, torch_kFloat64 = 7

   !> What a loss does with the losses of a batch
   integer(c_int), parameter, public :: torch_kNone = 0, torch_kMean = 1, torch_kSum = 2

   !> Kind of the numbers in layouts
   integer, parameter, public :: ftorch_int = int32
end module ftorch_types
