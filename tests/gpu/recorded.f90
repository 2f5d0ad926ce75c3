! SPDX-License-Identifier: MIT
!> load with record=.true. on a GPU: CUDA graphs give the numbers of the script as it is, bit for bit, for arrays of the
!> host and of the device, with dropout and with learning rates that change.
program recorded
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: rows = 64, calls = 60
   type(torch_pymodule) :: plain, replayed
   real(real32), allocatable :: x(:, :), target(:, :), y(:, :)

   allocate (x(2, rows), target(2, rows), y(2, rows))
   call random_number(x)
   target = sin(x)
   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call compare(on_device=.false., tensor_rate=.false.)
   call compare(on_device=.true., tensor_rate=.false.)
   call compare(on_device=.true., tensor_rate=.true.)
   call finish()

contains

   subroutine compare(on_device, tensor_rate)
      logical, intent(in) :: on_device, tensor_rate

      real(real64) :: losses(calls), again(calls)
      real(real32) :: sums(calls), sums_again(calls)
      integer(int64) :: executions

      call plain%load(script("recorded.py"), config=[torch_in("tensor_rate", tensor_rate)], device="cuda:0")
      call replayed%load(script("recorded.py"), config=[torch_in("tensor_rate", tensor_rate)], device="cuda:0", &
         record=.true.)
      if (on_device) then
         call run_there(plain, x, target, y, rows, losses, sums)
         call run_there(replayed, x, target, y, rows, again, sums_again)
      else
         call run_here(plain, x, target, y, losses, sums)
         call run_here(replayed, x, target, y, again, sums_again)
      end if
      call expect(all(losses == again), "losses are the same, bit for bit")
      call expect(all(sums == sums_again), "predictions, too")
      call replayed%call("executed", [torch_arg ::], [torch_out(executions)])
      call expect(executions > 4 .and. executions < 30, "Python ran the first calls only")
   end subroutine compare

   subroutine change(model, call)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: call

      if (call == 1) call model%call("seed", [torch_in(9)])
      if (mod(call, 20) == 0) call model%call("rate", [torch_in(1e-2_real64/call)])
   end subroutine change

   subroutine run_here(model, x, target, y, losses, sums)
      type(torch_pymodule), intent(in) :: model
      real(real32), intent(inout) :: x(:, :), target(:, :), y(:, :)
      real(real64), intent(out) :: losses(:)
      real(real32), intent(out) :: sums(:)

      integer :: call
      logical :: is_completed

      do call = 1, calls
         call change(model, call)
         is_completed = model%train([torch_in(x)], [torch_in(target)], losses(call))
         call model%forward([torch_in(x)], [torch_out(y)])
         sums(call) = sum(y)
      end do
   end subroutine run_here

   !> The arrays are on the device from end to end
   subroutine run_there(model, x, target, y, n, losses, sums)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(2, n), target(2, n), y(2, n)
      real(real64), intent(out) :: losses(:)
      real(real32), intent(out) :: sums(:)

      integer :: call
      logical :: is_completed

      !$acc enter data copyin(x, target, y)
      do call = 1, calls
         call change(model, call)
         !$acc host_data use_device(x, target, y)
         is_completed = model%train([torch_in(x)], [torch_in(target)], losses(call))
         call model%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         !$acc update self(y)
         sums(call) = sum(y)
      end do
      !$acc exit data delete(x, target, y)
   end subroutine run_there
end program recorded
