! SPDX-License-Identifier: MIT
! A user's program: calls the script that is its argument, and prints 15.
program user
   use, intrinsic :: iso_fortran_env, only : error_unit
   use ftn_pytorch
   implicit none
   type(torch_pymodule) :: model
   character(len=1000) :: script
   character(len=:), allocatable :: message
   real :: x(3), y(3)
   integer :: stat, one(1), three(1)

   call get_command_argument(1, script)
   call model%load(trim(script), stat=stat, errmsg=message)
   if (stat /= FTN_PYTORCH_OK) then
      write (error_unit, "(a)") message
      error stop "load"
   end if
   x = [1, 2, 3]
   call model%forward([torch_in(x)], [torch_out(y)])
   one = 1
   call model%forward([torch_in(one)], [torch_out(three)])
   if (three(1) /= 3) error stop "integer"
   print "(i0)", nint(sum(y))
end program user
