! SPDX-License-Identifier: MIT
!> Threads compute the columns of a model. Then a network is asked for their heating: once for all of them, once by
!> each thread for its own, and once by each thread for a column at a time.
program openmp_columns
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use omp_lib, only : omp_get_max_threads, omp_get_num_threads, omp_get_thread_num
   use ftn_pytorch
   implicit none

   integer, parameter :: levels = 40, columns = 2048, steps = 20
   real(real64), allocatable :: temperature(:, :), heating(:, :, :)
   real(real64) :: seconds(3), start
   type(torch_pymodule) :: model
   character(1000) :: script
   integer :: step, way

   call get_command_argument(1, script)
   call model%load(script)
   allocate (temperature(levels, columns), heating(levels, columns, 3))

   ! Each way once before the clock runs: what is first called is checked, and threads are made
   call fill(temperature, 0)
   call forward_all(heating(:, :, 1))
   call forward_by_thread(heating(:, :, 2))
   call forward_by_column(heating(:, :, 3))

   seconds = huge(seconds)
   do step = 1, steps
      call fill(temperature, step)
      start = now()
      call forward_all(heating(:, :, 1))
      seconds(1) = min(seconds(1), now() - start)
      start = now()
      call forward_by_thread(heating(:, :, 2))
      seconds(2) = min(seconds(2), now() - start)
      start = now()
      call forward_by_column(heating(:, :, 3))
      seconds(3) = min(seconds(3), now() - start)
      ! the same numbers, but for the order in which a matrix product adds them up
      do way = 2, 3
         if (any(abs(heating(:, :, way) - heating(:, :, 1)) > 1d-13)) error stop "the numbers differ"
      end do
      if (all(heating(:, 1, 1) == heating(:, 2, 1))) error stop "all columns have the same heating"
   end do

   print "(a, i0, a, i0, a)", "columns: ", columns, ", threads: ", omp_get_max_threads(), ", all three ways agree"
   call tell("one call for all columns", seconds(1))
   call tell("a call per thread", seconds(2))
   call tell("a call per column", seconds(3))
   call model%free()

contains

   !> What threads are for: columns are independent of each other
   subroutine fill(t, step)
      real(real64), intent(out) :: t(:, :)
      integer, intent(in) :: step
      integer :: i, k

      !$omp parallel do private(k)
      do i = 1, size(t, 2)
         do k = 1, size(t, 1)
            t(k, i) = 220 + 80*exp(-real(k, real64)/20)*(1 + 0.1*sin(0.01*i + 0.3*step))
         end do
      end do
   end subroutine fill

   !> The threads have met: one of them calls, and torch uses threads of its own
   subroutine forward_all(h)
      real(real64), intent(inout), target :: h(:, :)

      call model%forward([torch_in(temperature)], [torch_out(h)])
   end subroutine forward_all

   !> Each thread calls with its own columns. The calls are made one after the other: Python has one lock
   subroutine forward_by_thread(h)
      real(real64), intent(inout), target :: h(:, :)
      integer :: first, last, failures

      failures = 0
      !$omp parallel private(first, last) reduction(+ : failures)
      first = omp_get_thread_num()*columns/omp_get_num_threads() + 1
      last = (omp_get_thread_num() + 1)*columns/omp_get_num_threads()
      failures = failures + forward(h, first, last)
      !$omp end parallel
      if (failures > 0) error stop "a call failed"
   end subroutine forward_by_thread

   !> The way not to do it: a call costs more than the work in it
   subroutine forward_by_column(h)
      real(real64), intent(inout), target :: h(:, :)
      integer :: i, failures

      failures = 0
      !$omp parallel do reduction(+ : failures)
      do i = 1, columns
         failures = failures + forward(h, i, i)
      end do
      if (failures > 0) error stop "a call failed"
   end subroutine forward_by_column

   !> Columns first to last; 1 if that failed. In a parallel region the program should not stop in the middle
   integer function forward(h, first, last) result(failure)
      real(real64), intent(inout), target :: h(:, :)
      integer, intent(in) :: first, last
      integer :: stat
      character(:), allocatable :: reason

      call model%forward([torch_in(temperature(:, first:last))], [torch_out(h(:, first:last))], &
                         stat=stat, errmsg=reason)
      failure = merge(0, 1, stat == FTN_PYTORCH_OK)
      if (failure == 1) print "(a)", reason
   end function forward

   subroutine tell(what, time)
      character(*), intent(in) :: what
      real(real64), intent(in) :: time

      print "(2x, a, t30, f9.3, a)", what, 1000*time, " ms in the fastest step"
   end subroutine tell

   real(real64) function now()
      integer(int64) :: ticks, rate

      call system_clock(ticks, rate)
      now = real(ticks, real64)/rate
   end function now
end program openmp_columns
