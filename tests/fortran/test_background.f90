! SPDX-License-Identifier: MIT
!> load with background=.true.: training goes on in a process of its own while the program computes, the program gets
!> its weights, its failures, and what a restart needs.
program test_background
   use, intrinsic :: ieee_arithmetic, only : ieee_is_finite, ieee_value, ieee_quiet_nan
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   character(*), parameter :: gate = "test_background.gate"
   type(torch_pymodule) :: model, plain
   type(torch_module) :: saved
   real(real64) :: x(2, 4), target(1, 4), before(1, 4), after(1, 4), synchronous(1, 4), loss
   integer :: step, here, stat, unit
   logical :: completed
   character(:), allocatable :: errmsg

   call random_init(repeatable=.true., image_distinct=.true.)
   open (newunit=unit, file=gate)
   close (unit, status="delete")
   call random_number(x)
   target(1, :) = x(1, :) - x(2, :)
   call plain%load(script("beside.py"))
   call model%load(script("beside.py"), config=[torch_in("file", gate)], background=.true.)

   call model%forward([torch_in(x)], [torch_out(before)])
   do step = 1, 3
      completed = model%train([torch_in(x)], [torch_in(target)], loss)
      call expect(.not. completed .and. .not. ieee_is_finite(loss), "no step is done yet: the loss is infinite")
   end do
   open (newunit=unit, file=gate)
   call learn(model, completed)
   call expect(completed, "what the steps report arrives")
   call counted(model, "published", here)
   call expect(here >= 30, "the weights are not older than what was told of them")

   do step = 1, 8
      completed = plain%train([torch_in(x)], [torch_in(target)], loss)
   end do
   call plain%forward([torch_in(x)], [torch_out(synchronous)])
   call model%forward([torch_in(x)], [torch_out(after)])
   call expect(any(after /= before), "the program predicts with what was learnt")
   call expect(abs(loss) < 1 .and. ieee_is_finite(loss), "the loss is that of a step")
   call counted(model, "trained_here", here)
   call expect(here == 0, "this process has trained nothing")

   call model%save("test_background.state")
   call model%free()
   call model%load(script("beside.py"), config=[torch_in("file", gate)], background=.true.)
   call model%restore("test_background.state")
   call learn(model, completed)
   call expect(completed, "the count of steps goes on in the other process")

   x(1, 1) = ieee_value(x(1, 1), ieee_quiet_nan)
   do step = 1, 1000
      completed = model%train([torch_in(x)], [torch_in(target)], loss, stat=stat, errmsg=errmsg)
      if (stat /= FTN_PYTORCH_OK) exit
   end do
   call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a failure of a step reaches a later call")
   call expect_text(errmsg, "a sample is not finite", "with its text")
   call expect_text(errmsg, "beside.py", "and its place")
   call model%free()
   close (unit, status="delete")

   call saved%load("affine.pt", background=.true., stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a saved model", errmsg, "leave out background=")
   call finish()

contains

   !> Train until the steps report that they are done
   subroutine learn(model, completed)
      type(torch_pymodule), intent(in) :: model
      logical, intent(out) :: completed
      integer :: call

      do call = 1, 100
         completed = model%train([torch_in(x)], [torch_in(target)], loss)
         if (completed) exit
      end do
   end subroutine learn

   subroutine counted(model, what, count)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: what
      integer, intent(out) :: count
      type(torch_results) :: results

      call model%call(what, results)
      call results%scalar(1, count)
      call results%free()
   end subroutine counted
end program test_background
