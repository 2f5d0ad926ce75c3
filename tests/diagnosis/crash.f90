! SPDX-License-Identifier: MIT
!> Calls the function "crash" of the script that its argument names. gfortran's main program has handlers of its own.
program crash
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model
   character(1000) :: file
   real :: x(3, 2)

   x = 1
   call get_command_argument(1, file)
   call model%load(trim(file))
   call model%call("crash", [torch_in(x)])
end program crash
