! SPDX-License-Identifier: MIT
!> Calls of a script of the corpus from Fortran. The script has two functions beside its own, of driven.py: "ftn_next"
!> tells what the next call of "step" is given and what it will give, "ftn_saw" is told what came back.
module playing
   use, intrinsic :: iso_fortran_env, only : int64
   use ftn_pytorch
   use items
   implicit none
   private

   public :: on_a_line, play

   integer, parameter :: width = 7

   abstract interface
      !> Load a file
      subroutine opens(model, file, stat, errmsg)
         import :: torch_pymodule
         implicit none
         type(torch_pymodule), intent(inout) :: model
         character(*), intent(in) :: file
         integer, intent(out) :: stat
         character(:), allocatable, intent(inout) :: errmsg
      end subroutine opens
   end interface

contains

   !> All calls of one script. failure: a status and a text where it was not loaded, or its own functions fail
   subroutine play(file, form, rank, open_it, failure)
      character(*), intent(in) :: file
      !> "arrays", "sections" or "tensors"
      character(*), intent(in) :: form
      !> Of this process, from 0 on
      integer, intent(in) :: rank
      procedure(opens) :: open_it
      character(:), allocatable, intent(out) :: failure

      type(torch_pymodule) :: model
      type(torch_results) :: given
      type(item), allocatable, target :: inputs(:), outputs(:)
      integer(int64), pointer :: plan(:)
      character(:), allocatable :: errmsg
      integer :: stat, number

      failure = ""
      number = 0
      allocate (inputs(16), outputs(64))
      call open_it(model, file, stat, errmsg)
      if (stat /= FTN_PYTORCH_OK) then
         failure = "load: " // errmsg
         return
      end if
      do
         call model%call("ftn_next", [torch_in(rank)], given, stat=stat, errmsg=errmsg)
         if (stat /= FTN_PYTORCH_OK) exit
         nullify (plan)
         call given%to_array(1, plan)
         if (plan(1) < 0) exit
         number = number + 1
         call prepare(plan, given, form, number, inputs, outputs)
         call step(model, form, inputs(:plan(1)), outputs(:plan(2)), stat, errmsg)
         if (stat /= FTN_PYTORCH_OK) exit
      end do
      if (stat /= FTN_PYTORCH_OK) failure = errmsg
      call model%free()
   end subroutine play

   !> Values and memory of a call
   subroutine prepare(plan, given, form, number, inputs, outputs)
      !> How many there are, and what they are like
      integer(int64), intent(in) :: plan(:)
      type(torch_results), intent(inout) :: given
      character(*), intent(in) :: form
      !> Of the call
      integer, intent(in) :: number
      type(item), intent(inout) :: inputs(:), outputs(:)

      logical :: is_section, is_copied_now
      integer :: i, at

      is_section = form == "sections"
      at = 2
      do i = 1, int(plan(1))
         ! torch has no negative strides, so what runs backwards is copied
         is_copied_now = is_section .and. mod(number, 3) == 0 .and. plan(at + 2) == is_read
         call inputs(i)%renew(plan(at + 1:at + width), is_section .and. plan(at + 2) /= is_number, is_copied_now)
         if (is_copied_now) inputs(i)%access = is_copied
         call inputs(i)%receive(given, 1 + i)
         call inputs(i)%put()
         at = at + width
      end do
      do i = 1, int(plan(2))
         call outputs(i)%renew(plan(at + 1:at + width), is_section, is_section)
         call given%scalar(1 + int(plan(1)) + i, outputs(i)%name)
         at = at + width
      end do
   end subroutine prepare

   !> One call of the step, and what came of it
   subroutine step(model, form, inputs, outputs, stat, errmsg)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: form
      type(item), intent(inout), target :: inputs(:), outputs(:)
      integer, intent(out) :: stat
      character(:), allocatable, intent(inout) :: errmsg

      character(:), allocatable :: said
      integer :: status, i
      logical :: is_kept

      said = ""
      is_kept = .true.
      do i = 1, size(inputs)
         if (inputs(i)%access == is_text) then
            inputs(i)%arg = torch_in(inputs(i)%text)
         else
            call inputs(i)%describe()
         end if
      end do
      if (form == "tensors") then
         call call_with_tensors(model, inputs, outputs, status, said)
      else
         do i = 1, size(outputs)
            call outputs(i)%describe()
         end do
         call model%call("step", args_of(inputs), args_of(outputs), stat=status, errmsg=said)
         do i = 1, size(outputs)
            call outputs(i)%take(is_kept)
         end do
      end if
      do i = 1, size(inputs)
         call inputs(i)%take(is_kept)
      end do
      call model%call("ftn_saw", [torch_in(status), torch_in(said), torch_in(is_kept), told(inputs), told(outputs)], &
         stat=stat, errmsg=errmsg)
   end subroutine step

   !> The same in a scope, with tensors over the arrays, and results as tensors, whose memory is read
   subroutine call_with_tensors(model, inputs, outputs, status, said)
      type(torch_pymodule), intent(inout) :: model
      type(item), intent(inout), target :: inputs(:), outputs(:)
      integer, intent(out) :: status
      character(:), allocatable, intent(inout) :: said

      type(torch_scope) :: scope
      type(torch_results) :: results
      logical :: is_kept
      integer :: i

      call scope%begin()
      do i = 1, size(inputs)
         if (all(inputs(i)%access /= [is_read, is_written])) cycle
         call inputs(i)%tensor%from_array(inputs(i)%arg)
         inputs(i)%arg = inputs(i)%tensor%arg()
      end do
      call model%call("step", args_of(inputs), results, stat=status, errmsg=said)
      if (status == FTN_PYTORCH_OK .and. results%count() /= size(outputs)) then
         status = -1
         said = "another number of results"
      end if
      do i = 1, size(outputs)
         if (status /= FTN_PYTORCH_OK) exit
         if (outputs(i)%access == is_written .and. outputs(i)%rank > 0) then
            call results%get(i, outputs(i)%tensor)
            call outputs(i)%read_tensor()
         else if (outputs(i)%access == is_text) then
            call results%scalar(i, outputs(i)%text)
         else ! a number, or of a type that Fortran does not have
            call outputs(i)%describe()
            call results%copy_to(i, outputs(i)%arg)
            call outputs(i)%take(is_kept)
         end if
      end do
      call results%free()
      call scope%end()
   end subroutine call_with_tensors

   function args_of(all) result(args)
      type(item), intent(in) :: all(:)
      type(torch_arg) :: args(size(all))

      integer :: i

      do i = 1, size(all)
         args(i) = all(i)%arg
      end do
   end function args_of

   function told(all) result(args)
      type(item), intent(inout) :: all(:)
      type(torch_arg) :: args(size(all))

      integer :: i

      do i = 1, size(all)
         args(i) = all(i)%told()
      end do
   end function told

   !> An answer to whoever reads lines
   pure function on_a_line(text) result(line)
      character(*), intent(in) :: text
      character(len(text)) :: line

      integer :: i

      line = text
      do i = 1, len(text)
         if (text(i:i) == new_line("a")) line(i:i) = " "
      end do
   end function on_a_line
end module playing
