! SPDX-License-Identifier: MIT
!> State of a training in files.
!>
!> test_checkpoint                       save, checkpoint, restore and their failures, within one process
!> test_checkpoint <first> <last> <name>...
!>                                       train the steps after first up to last. After step 0 it starts afresh, after
!>                                       another one from the folder <name>; losses go to <name>_<last>.txt
program test_checkpoint
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   integer, parameter :: samples = 4
   character(100) :: argument(3)
   integer :: i, part, first, last

   if (command_argument_count() == 0) then
      call in_one_process()
      call saved_model()
      call finish()
   else
      do part = 0, command_argument_count() - 3, 3
         do i = 1, 3
            call get_command_argument(part + i, argument(i))
         end do
         read (argument(1), *) first
         read (argument(2), *) last
         call run(first, last, trim(argument(3)))
      end do
   end if

contains

   !> What the simulation would bring at that step; the same in every run
   subroutine make(step, x, target)
      integer, intent(in) :: step
      real(real32), intent(out) :: x(3, samples), target(1, samples)

      integer :: j

      do j = 1, samples
         x(:, j) = [sin(0.1*step + j), cos(0.3*step - j), sin(0.7*step)]
         target(1, j) = sum(x(:, j))
      end do
   end subroutine make

   function trained(model, step) result(loss)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: step
      real(real64) :: loss

      real(real32) :: x(3, samples), target(1, samples)

      call make(step, x, target)
      call model%train_step([torch_in(x)], [torch_in(target)], loss)
   end function trained

   function steps_done(model) result(steps)
      type(torch_pymodule), intent(in) :: model
      integer :: steps

      call model%call("steps_done", outputs=[torch_out(steps)])
   end function steps_done

   subroutine run(first, last, name)
      integer, intent(in) :: first, last
      character(*), intent(in) :: name

      type(torch_pymodule) :: model
      real(real64) :: loss
      integer :: step, reached, unit
      character(8) :: number

      call model%load(script("checkpoint.py"))
      reached = 0
      if (first > 0) call model%restore(name, found=reached)
      if (first == 0) call execute_command_line("rm -rf "//name)
      if (reached /= first) error stop "the restart did not go on from the step that was asked for"
      write (number, "(i0)") last
      open (newunit=unit, file=name//"_"//trim(number)//".txt", action="write", status="replace")
      do step = first + 1, last
         loss = trained(model, step)
         write (unit, "(i0, 1x, z16.16)") step, transfer(loss, 0_int64)
         if (mod(step, 50) == 0) call model%checkpoint(name, keep=2, step=step)
      end do
      close (unit)
   end subroutine run

   subroutine in_one_process()
      type(torch_pymodule) :: model, other
      character(:), allocatable :: errmsg
      character(*), parameter :: folder = "test_checkpoint_steps", file = "test_checkpoint.ckpt"
      real(real64) :: loss
      integer :: stat, found

      call execute_command_line("rm -rf "//folder//" "//file)
      call model%load(script("checkpoint.py"))
      call model%restore(folder, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a first start finds no checkpoint")
      call expect_text(errmsg, "does not exist", "text of a first start")

      loss = trained(model, 1)
      call model%save(file//"  ")
      call model%checkpoint(folder)
      loss = trained(model, 2)
      call model%checkpoint(folder, keep=2, step=10)
      loss = trained(model, 3)
      call model%checkpoint(folder, 2, 20)
      loss = trained(model, 4)

      found = 5
      call model%restore(file, found=found)
      call expect(found == -1 .and. steps_done(model) == 1, "a file without a step")
      call model%restore(folder, found=found)
      call expect(found == 20 .and. steps_done(model) == 3, "the newest of a folder")
      call expect(trained(model, 4) == loss, "the same loss once more")
      call model%restore(folder, step=10)
      call expect(steps_done(model) == 2, "a step that was asked for")
      found = 5
      call model%restore(folder, step=1, found=found, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a step that was not kept")
      call expect_text(errmsg, "of step 1, but of 20, 10", "text of a step that was not kept")
      call expect(found == 5 .and. steps_done(model) == 2, "nothing is changed by a failure")

      call other%load(script("checkpoint.py"))
      call other%checkpoint(folder, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_LOCKED, "a second writer", errmsg, "through another module")
      call model%free()
      call other%checkpoint(folder, step=15, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a step before that of another run")
      call expect_text(errmsg, "is later than step 15", "text of a step before that of another run")
      call other%checkpoint(folder, keep=0, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "keep is zero")
      call other%checkpoint(file//"/steps", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "a folder that cannot be made", errmsg, "cannot be made in")

      call damage(folder//"/checkpoint-000000000020.ckpt")
      call other%restore(folder, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_CORRUPT, "a damaged checkpoint")
      call expect_text(errmsg, "checkpoint-000000000020.ckpt is damaged", "name of the damaged file")
      call expect_text(errmsg, "the one of step 10", "what can be used instead")
      call ftn_pytorch_on_warning(take)
      call other%restore(folder, fallback=.true., found=found)
      call expect(found == 10 .and. steps_done(other) == 2, "the one before the damaged one")
      call other%restore(script("checkpoint.py"), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "a foreign file", errmsg, "is no checkpoint of ftn_pytorch")
      call ftn_pytorch_on_warning()
   end subroutine in_one_process

   !> Change a byte in the middle
   subroutine damage(file)
      character(*), intent(in) :: file

      integer :: unit, length
      character(1) :: byte

      open (newunit=unit, file=file, access="stream", form="unformatted", action="readwrite", status="old")
      inquire (unit=unit, size=length)
      read (unit, pos=length/2) byte
      write (unit, pos=length/2) achar(ieor(iachar(byte), 1))
      close (unit)
   end subroutine damage

   subroutine take(text)
      character(*), intent(in) :: text

      call expect_text(text, "used instead", "the warning tells what was used")
   end subroutine take

   !> A torch_module keeps its optimizer
   subroutine saved_model()
      type(torch_module) :: model
      real(real32) :: x(1, samples), target(1, samples)
      real(real64) :: before, after
      character(*), parameter :: folder = "test_checkpoint_model_%r"

      call execute_command_line("rm -rf test_checkpoint_model_0")
      call model%load("polynomial.pt", backend="python")
      x(1, :) = [0.1, 0.2, 0.3, 0.4]
      target = x**2
      call model%create_optimizer_sgd(0.1)
      call model%train([torch_in(x)], [torch_in(target)], before)
      call model%checkpoint(folder)
      call model%train([torch_in(x)], [torch_in(target)], before)
      call model%restore(folder)
      call model%train([torch_in(x)], [torch_in(target)], after)
      call expect(before == after, "a saved model goes on with its optimizer")
   end subroutine saved_model
end program test_checkpoint
