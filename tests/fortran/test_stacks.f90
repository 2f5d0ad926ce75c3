! SPDX-License-Identifier: MIT
!> A program with megabytes of thread-local data, which the C library takes out of the stack of each thread. It runs
!> with several limits of the stack.
module thread_local_data
   use, intrinsic :: iso_fortran_env, only : real64
   implicit none
   public

   real(real64), save :: work(400000) = 0
   !$omp threadprivate(work)
end module thread_local_data

program test_stacks
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   use thread_local_data
   implicit none

   type(torch_pymodule) :: model
   real(real64) :: total

   work = 1
   call model%load(script("threads.py"))
   call expect(called("of_python") == 27, "threads of Python")
   call expect(called("of_torch") == 3, "threads of torch")
   call expect(called("of_a_loader") == 16, "a process that loads data")
   total = 0
   !$omp parallel num_threads(2)
   work = work + 1
   !$omp critical
   total = total + maxval(work)
   !$omp end critical
   !$omp end parallel
   call expect(total == 3, "threads of the program")
   call finish()

contains

   real(real64) function called(name) result(found)
      character(*), intent(in) :: name

      found = 0
      call model%call(name, [torch_arg ::], [torch_out(found)])
   end function called
end program test_stacks
