! SPDX-License-Identifier: MIT
program first
   use ftn_pytorch
   implicit none
   type(torch_pymodule) :: model
   real :: x(3, 100), y(1, 100), loss
   call random_number(x)
   y(1, :) = x(1, :) - 2*x(2, :) + x(3, :)
   call model%load("first.py")
   do while (.not. model%train([torch_in(x)], [torch_in(y)], loss))
   end do
   call model%forward([torch_in(x)], [torch_out(y)])
   print *, "loss", loss
end program first
