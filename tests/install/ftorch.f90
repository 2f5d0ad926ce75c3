! SPDX-License-Identifier: MIT
! A program for FTorch: runs the model that is its argument, and prints 15.
program user
   use, intrinsic :: iso_fortran_env, only : real32
   use ftorch
   implicit none
   type(torch_model) :: model
   type(torch_tensor) :: in(1), out(1)
   real(real32), target :: x(3), y(3)
   character(len=1000) :: file

   call get_command_argument(1, file)
   call torch_model_load(model, file, torch_kCPU)
   x = [1, 2, 3]
   call torch_tensor_from_array(in(1), x, torch_kCPU)
   call torch_tensor_from_array(out(1), y, torch_kCPU)
   call torch_model_forward(model, in, out)
   print "(i0)", nint(sum(y))
end program user
