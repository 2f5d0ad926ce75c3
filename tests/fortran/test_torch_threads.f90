! SPDX-License-Identifier: MIT
!> The number of threads, in a process with Python and with the direct path; neither has brought torch to the other.
!>
!> With the argument "later", the direct path comes after the number has been set.
program test_torch_threads
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script, threads_of_process
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: counter
   type(torch_module) :: model
   real(real64), allocatable :: x(:), y(:)
   real(real64) :: small(2), counted(2)
   logical :: later
   integer :: before

   later = command_argument_count() > 0
   if (.not. later) call load()
   call counter%load(script("counter.py"))
   small = 1
   call counter%forward([torch_in(small)], [torch_out(counted)])
   call ftn_pytorch_set_threads(1)
   if (later) call load()

   before = threads_of_process()
   allocate (x(400000), y(400000))
   x = 1
   call model%forward([torch_in(x)], [torch_out(y)])
   call expect(threads_of_process() == before, "a large call has made no threads")
   call finish()

contains

   subroutine load()
      call model%load("direct_weighted.pt", backend="direct")
   end subroutine load
end program test_torch_threads
