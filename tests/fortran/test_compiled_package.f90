! SPDX-License-Identifier: MIT
!> A package of compiled code without Python: it trains as the saved recording of its script does, within a tolerance,
!> and each goes on from checkpoints of the other.
program test_compiled_package
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, is_mapped
   use ftn_pytorch
   implicit none

   integer, parameter :: many = 8, few = 3
   real(real64), parameter :: near = 1d-6
   real(real64), target :: x(2, many), t(2, many), y(2, many), z(2, many)
   type(torch_module) :: package, recording

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   t = sin(3*x)
   call recording%load("compiled_steps.ftr")
   call is_a_recording_by_another_name()
   call package%load("compiled_steps.pt2")
   call expect(package%backend() == "direct", "it runs without Python")
   call expect(is_mapped(".wrapper.so"), "its code is loaded")
   call trains_the_same("steps")
   call goes_on_from_checkpoints()
   call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call refuses()
   call finish()

contains

   subroutine trains_the_same(what)
      character(*), intent(in) :: what

      real(real64), allocatable, target :: batch(:, :), goal(:, :)
      real(real64) :: one, two
      integer :: step, rows

      do step = 1, 20
         rows = merge(many, few, mod(step, 2) == 1)
         batch = x(:, 1:rows)
         goal = t(:, 1:rows)
         call package%train_step([torch_in(batch)], [torch_in(goal)], one)
         call recording%train_step([torch_in(batch)], [torch_in(goal)], two)
         call expect(abs(one - two) < near, what)
      end do
      call package%forward([torch_in(x)], [torch_out(y)])
      call recording%forward([torch_in(x)], [torch_out(z)])
      call expect(all(abs(y - z) < near), "predictions after " // what)
      call expect(parameters_agree(), "weights after " // what)
   end subroutine trains_the_same

   logical function parameters_agree()
      type(torch_results) :: ours, theirs
      type(torch_tensor) :: mine, other
      integer :: i

      call package%parameters(ours)
      call recording%parameters(theirs)
      parameters_agree = ours%count() == 4 .and. theirs%count() == 4
      do i = 1, ours%count()
         call ours%get(i, mine)
         call theirs%get(i, other)
         parameters_agree = parameters_agree .and. distance(mine, other) < near
      end do
   end function parameters_agree

   real(real64) function distance(one, two)
      type(torch_tensor), intent(in) :: one, two

      type(torch_tensor) :: found

      call torch_call("dist", [one%arg(), two%arg()], found)
      call found%item(distance)
   end function distance

   subroutine goes_on_from_checkpoints()
      integer :: step

      call package%set("lr", 3d-3)
      call recording%set("lr", 3d-3)
      call trains_the_same("another rate")
      call package%checkpoint("compiled_steps_by_package", step=40)
      call recording%restore("compiled_steps_by_package", found=step)
      call expect(step == 40, "the recording goes on from the package")
      call trains_the_same("a checkpoint of the package")
      call recording%checkpoint("compiled_steps_by_recording", step=60)
      call package%restore("compiled_steps_by_recording", found=step)
      call expect(step == 60, "the package goes on from the recording")
      call trains_the_same("a checkpoint of the recording")
      call package%restore("compiled_steps_by_script")
      call recording%restore("compiled_steps_by_script")
      call trains_the_same("a checkpoint of the script")
      call package%save("compiled_steps_saved.ftr")
      call recording%load("compiled_steps_saved.ftr")
      call trains_the_same("what the package has saved")
   end subroutine goes_on_from_checkpoints

   subroutine is_a_recording_by_another_name()
      type(torch_module) :: model

      call model%load("without_code.ftr")
      call model%forward([torch_in(x)], [torch_out(y)])
      call recording%forward([torch_in(x)], [torch_out(z)])
      call expect(all(y == z), "the same bytes as a recording")
      call expect(.not. is_mapped(".wrapper.so"), "no code is loaded of a file with another name")
   end subroutine is_a_recording_by_another_name

   subroutine refuses()
      type(torch_module) :: model
      integer :: stat
      character(:), allocatable :: errmsg

      call package%save("compiled_steps_saved.pt2", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "code is not written again", errmsg, "ends in .ftr")
      call model%load("damaged.pt2", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_CORRUPT, "a package that was changed", errmsg, "does not agree")
      call package%forward([torch_in(x(1:1, :))], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "another size", errmsg, "its recordings take: x float64 (B, 2)")
      call package%restore("damaged.pt2", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_CORRUPT, "no checkpoint")
   end subroutine refuses
end program test_compiled_package
