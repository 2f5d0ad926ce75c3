! SPDX-License-Identifier: MIT
!> One module of the direct path called by several OpenMP threads: predictions side by side, beside training and reload.
program test_direct_threads
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, finish
   use ftn_pytorch
   use omp_lib, only : omp_get_max_threads, omp_get_num_threads, omp_get_thread_num
   implicit none

   integer, parameter :: columns = 32, calls = 300
   type(torch_module) :: model, counter
   real(real32) :: first(1), last(1)
   integer :: failures

   call expect(omp_get_max_threads() > 1, "several threads")
   call model%load("direct_mlp_eval.pt", backend="direct")
   call same_as_alone(failures)
   call expect(failures == 0, "predictions of several threads are those of one")
   call beside_training(failures)
   call expect(failures == 0, "training, saving and reloading beside predictions")

   call while_replaced(failures)
   call expect(failures == 0, "a module that another thread replaces serves or says that it was freed")

   call counter%load("direct_counter.pt", backend="direct")
   call counter%forward([torch_in(first)], [torch_out(last)])
   call count_calls(failures)
   call counter%forward([torch_in(first)], [torch_out(last)])
   call expect(failures == 0 .and. nint(last(1)) == calls*omp_get_max_threads() + 2, "a model with state runs alone")
   call expect(omp_get_max_threads() > 1, "the team size is as it was")
   call finish()

contains

   !> The first thread loads the module again and again, and frees it when another one was served, or has made all calls
   subroutine while_replaced(failures)
      integer, intent(out) :: failures

      type(torch_module) :: shared
      real(real32) :: x(16, columns), y(4, columns)
      integer :: number, stat, served, served_now, ended, ended_now

      x = 0.5
      call shared%load("direct_mlp_eval.pt", backend="direct")
      failures = 0
      served = 0
      ended = 0
      !$omp parallel private(y, number, stat, served_now, ended_now) reduction(+:failures)
      if (omp_get_thread_num() == 0) then
         number = 0
         do
            number = number + 1
            call shared%load("direct_mlp_eval.pt", backend="direct")
            !$omp atomic read
            served_now = served
            !$omp atomic read
            ended_now = ended
            if (number >= calls/10 .and. (served_now > 0 .or. ended_now == omp_get_num_threads() - 1)) exit
         end do
         call shared%free()
      else
         do number = 1, calls
            call shared%forward([torch_in(x)], [torch_out(y)], stat=stat)
            if (stat == 0) then
               !$omp atomic
               served = served + 1
            end if
            if (all(stat /= [0, FTN_PYTORCH_ERR_FREED, FTN_PYTORCH_ERR_NOT_LOADED])) failures = failures + 1
         end do
         !$omp atomic
         ended = ended + 1
      end if
      !$omp end parallel
      if (served == 0) failures = failures + 1
   end subroutine while_replaced

   !> Each thread has inputs of its own, and one of another shape now and then
   subroutine same_as_alone(failures)
      integer, intent(out) :: failures

      real(real32), allocatable :: x(:, :), y(:, :), alone(:, :, :)
      integer :: thread, number, n, stat

      allocate (alone(4, columns, 0:omp_get_max_threads() - 1))
      allocate (x(16, columns))
      do thread = 0, omp_get_max_threads() - 1
         x = real(thread + 1, real32)/10
         call model%forward([torch_in(x)], [torch_out(alone(:, :, thread))])
      end do
      deallocate (x)
      failures = 0
      !$omp parallel private(x, y, thread, number, n, stat) reduction(+:failures)
      thread = omp_get_thread_num()
      do number = 1, calls
         n = merge(columns/2, columns, mod(number, 7) == 0)
         allocate (x(16, n), y(4, n))
         x = real(thread + 1, real32)/10
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
         if (stat /= 0) failures = failures + 1
         if (any(abs(y - alone(:, 1:n, thread)) > 1e-6)) failures = failures + 1
         deallocate (x, y)
      end do
      !$omp end parallel
   end subroutine same_as_alone

   subroutine beside_training(failures)
      integer, intent(out) :: failures

      real(real32) :: x(16, columns), y(4, columns), t(4, columns)
      real(real64) :: loss
      integer :: number, stat

      call model%create_optimizer_adam(1e-3)
      failures = 0
      !$omp parallel private(x, y, t, loss, number, stat) reduction(+:failures)
      x = 0.5
      t = 0
      do number = 1, calls/3
         stat = 0
         if (omp_get_thread_num() > 0 .or. mod(number, 3) > 0) then
            call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
         else if (mod(number, 2) == 0) then
            call model%train([torch_in(x)], [torch_in(t)], loss, stat=stat)
         else if (number == 33) then
            call model%reload(stat=stat)
         else
            call model%save("direct_threads.pt", stat=stat)
         end if
         if (stat /= 0) failures = failures + 1
      end do
      !$omp end parallel
   end subroutine beside_training

   subroutine count_calls(failures)
      integer, intent(out) :: failures

      real(real32) :: x(1), y(1)
      integer :: number, stat

      failures = 0
      !$omp parallel private(x, y, number, stat) reduction(+:failures)
      x = 0
      do number = 1, calls
         call counter%forward([torch_in(x)], [torch_out(y)], stat=stat)
         if (stat /= 0) failures = failures + 1
      end do
      !$omp end parallel
   end subroutine count_calls
end program test_direct_threads
