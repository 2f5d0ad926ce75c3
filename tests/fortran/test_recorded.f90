! SPDX-License-Identifier: MIT
!> load with record=.true.: the numbers of the script as it is, bit for bit, with hardly any of its Python code run.
!> What changes on the way is seen. And what cannot be recorded.
program test_recorded
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   integer, parameter :: calls = 60
   type(torch_pymodule) :: plain, recorded
   type(torch_module) :: saved
   real(real64) :: x(2, 8), y(2, 8), z(2, 8), target(2, 8), shorter(2, 3), one(2, 3), other(2, 3)
   real(real64) :: losses(calls), again(calls)
   integer(int64) :: executions
   integer :: call, stat
   character(:), allocatable :: errmsg

   call random_init(repeatable=.true., image_distinct=.true.)
   call plain%load(script("recorded.py"))
   call recorded%load(script("recorded.py"), record=.true.)
   call expect(recorded%backend() == "script", "the script runs it")
   call random_number(x)
   target = sin(x)
   shorter = x(:, :3)
   losses = run(plain)
   again = run(recorded)
   call expect(all(losses == again), "losses are the same, bit for bit")
   call expect(executed(plain) == 2*calls, "without recording Python runs every call")
   executions = executed(recorded)
   call expect(executions > 4 .and. executions < 20, "with it the first calls only")

   call plain%call("seed", [torch_in(5)])
   call plain%forward([torch_in(x)], [torch_out(y)])
   call plain%forward([torch_in(shorter)], [torch_out(one)])
   call recorded%call("seed", [torch_in(5)])
   call recorded%forward([torch_in(x)], [torch_out(z)])
   call recorded%forward([torch_in(shorter)], [torch_out(other)])
   call expect(all(y == z) .and. all(one == other), "dropout draws the same random numbers, in other shapes, too")

   call plain%save("recorded.ckpt")
   losses = run(plain)
   call recorded%restore("recorded.ckpt")
   again = run(recorded)
   call expect(all(losses == again), "a restored state goes on to the same losses")

   call recorded%reload()
   again = run(recorded)
   call expect(executed(recorded) > 4, "a reload starts with Python")
   call recorded%free()
   call plain%free()

   call tensors_of_scopes()
   call one_array_as_input_and_as_output()
   call recorded%load(script("recorded.py"), tolerance=1d-6, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "tolerance without record", errmsg, "tolerance is 1e-06")
   call recorded%load(script("recorded.py"), record=.true., tolerance=1d-6)
   call recorded%load(script("recorded.py"), record=.true., compile=.true., stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "record and compile", errmsg, "both record= and compile=")
   call saved%load("affine.pt", record=.true., stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "record of a saved model", errmsg, "leave out record=")
   call finish()

contains

   !> Losses of steps with predictions and another learning rate in between
   function run(model) result(found)
      type(torch_pymodule), intent(in) :: model
      real(real64) :: found(calls)
      logical :: is_completed

      call model%call("seed", [torch_in(9)])
      call model%call("rate", [torch_in(1e-2_real64)])
      do call = 1, calls
         if (call == calls/2) call model%call("rate", [torch_in(2e-3_real64)])
         is_completed = model%train([torch_in(x)], [torch_in(target)], found(call))
         call model%forward([torch_in(x)], [torch_out(y)])
      end do
   end function run

   !> Parts of results of operators, and of arrays of the program, which end with their scope in each step
   subroutine tensors_of_scopes()
      type(torch_pymodule) :: plain_steps, recorded_steps

      call plain_steps%load(script("recorded.py"))
      call recorded_steps%load(script("recorded.py"), record=.true.)
      losses = run_with_tensors(plain_steps)
      z = y
      again = run_with_tensors(recorded_steps)
      call expect(all(losses == again) .and. all(y == z), "tensors of scopes: the same losses and predictions")
      call expect(executed(recorded_steps) < 20, "tensors of scopes are recorded")
   end subroutine tensors_of_scopes

   function run_with_tensors(model) result(found)
      type(torch_pymodule), intent(in) :: model
      real(real64) :: found(calls)
      type(torch_scope) :: scope
      type(torch_tensor) :: columns, few, prediction, wanted
      logical :: is_completed

      call model%call("seed", [torch_in(4)])
      do call = 1, calls
         call scope%begin()
         call columns%from_array(x)
         few = torch_slice((1 + call/64d0)*columns, 2, first=3)
         call wanted%from_array(torch_in(target(:, 3:)))
         is_completed = model%train([few%arg()], [wanted%arg()], found(call))
         call model%forward([columns%arg()], prediction)
         call prediction%copy_to(torch_out(y))
         call scope%end()
      end do
   end function run_with_tensors

   subroutine one_array_as_input_and_as_output()
      type(torch_pymodule) :: model
      real(real64) :: total

      call model%load(script("recorded_in_place.py"), record=.true.)
      x = 1
      do call = 1, 12
         call model%forward([torch_in(x), torch_out(x)], [torch_out(total)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "one array as input and as output", errmsg)
         call expect(all(x == 2**call) .and. total == sum(x), "it is changed once in each call")
      end do
   end subroutine one_array_as_input_and_as_output

   integer(int64) function executed(model)
      type(torch_pymodule), intent(in) :: model
      type(torch_results) :: results

      call model%call("executed", results)
      call results%scalar(1, executed)
   end function executed
end program test_recorded
