! SPDX-License-Identifier: MIT
! A user's program: calls the saved model that is its argument, and says which path it takes.
program user
   use ftn_pytorch
   implicit none
   type(torch_module) :: model
   character(len=1000) :: file, backend
   real :: x(3, 2), y(1, 2)

   call get_command_argument(1, file)
   call get_command_argument(2, backend)
   if (backend == "") backend = "auto"
   call model%load(trim(file), backend=trim(backend))
   x = 1
   y = huge(y)
   call model%forward([torch_in(x)], [torch_out(y)])
   if (any(abs(y) > 10)) error stop "forward"
   print "(2a)", "through ", model%backend()
end program user
