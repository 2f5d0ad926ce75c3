! SPDX-License-Identifier: MIT
!> Threads of OpenMP that share a recorded module on a GPU, and threads with modules of their own.
program recorded_threads
   use, intrinsic :: iso_fortran_env, only : real32
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: threads = 4, calls = 400, width = 64, rows = 32
   type(torch_pymodule) :: plain, shared, own(threads)
   real(real32) :: x(width, rows, threads), expected(width, rows, threads)
   integer :: thread, wrong

   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call random_number(x)
   call load(plain, .false.)
   call load(shared, .true.)
   do thread = 1, threads
      call load(own(thread), .true.)
      call plain%forward([torch_in(x(:, :, thread))], [torch_out(expected(:, :, thread))])
   end do
   wrong = 0
   !$omp parallel do num_threads(threads) schedule(static, 1) reduction(+: wrong)
   do thread = 1, threads
      wrong = count_wrong(shared, x(:, :, thread), expected(:, :, thread))
   end do
   call expect(wrong == 0, "threads that share a recorded module get their own numbers")
   !$omp parallel do num_threads(threads) schedule(static, 1) reduction(+: wrong)
   do thread = 1, threads
      wrong = count_wrong(own(thread), x(:, :, thread), expected(:, :, thread))
   end do
   call expect(wrong == 0, "threads that record at the same time get their own numbers")
   call finish()

contains

   subroutine load(model, record)
      type(torch_pymodule), intent(inout) :: model
      logical, intent(in) :: record

      call model%load(script("recorded_traps.py"), config=[torch_in("kind", "apply")], device="cuda:0", record=record)
   end subroutine load

   function count_wrong(model, x, expected) result(wrong)
      type(torch_pymodule), intent(in) :: model
      real(real32), intent(in) :: x(:, :), expected(:, :)
      integer :: wrong

      real(real32), allocatable :: given(:, :), y(:, :)
      integer :: call

      allocate (given, source=x)
      allocate (y(width, rows))
      wrong = 0
      do call = 1, calls
         call model%forward([torch_in(given)], [torch_out(y)])
         if (any(y /= expected)) wrong = wrong + 1
      end do
   end function count_wrong
end program recorded_threads
