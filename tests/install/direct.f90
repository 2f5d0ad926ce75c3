! SPDX-License-Identifier: MIT
! A user's program: calls the saved model that is its argument through libtorch, and never starts Python.
program user
   use ftn_pytorch
   implicit none
   type(torch_module) :: model
   character(len=1000) :: file
   real :: x(3, 2), y(1, 2)

   call get_command_argument(1, file)
   call model%load(trim(file), backend="direct")
   x = 1
   y = huge(y)
   call model%forward([torch_in(x)], [torch_out(y)])
   if (any(abs(y) > 10)) error stop "forward"
end program user
