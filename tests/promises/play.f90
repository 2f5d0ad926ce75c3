! SPDX-License-Identifier: MIT
!> Scripts of the corpus in processes of their own: play FOLDER reads lines "FORM FILE DEVICE" of the pipe
!> FOLDER/commands0, and answers each in FOLDER/answers0. A process is forked for each line; FOLDER/warm.py has imported
!> torch before.
module where_it_computes
   use ftn_pytorch
   implicit none
   private

   public :: device, open_it

   character(20), save :: device = ""

contains

   subroutine open_it(model, file, stat, errmsg)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: file
      integer, intent(out) :: stat
      character(:), allocatable, intent(inout) :: errmsg

      if (device == "cpu") then
         call model%load(file, stat=stat, errmsg=errmsg)
      else
         call model%load(file, device=trim(device), stat=stat, errmsg=errmsg)
      end if
   end subroutine open_it
end module where_it_computes

program play_scripts
   use, intrinsic :: iso_c_binding, only : c_int
   use ftn_pytorch
   use playing, only : on_a_line, play
   use where_it_computes, only : device, open_it
   implicit none

   interface
      integer(c_int) function fork() bind(c)
         import :: c_int
         implicit none
      end function fork

      integer(c_int) function waitpid(process, status, options) bind(c)
         import :: c_int
         implicit none
         integer(c_int), value :: process, options
         integer(c_int), intent(out) :: status
      end function waitpid

      subroutine leave(code) bind(c, name="_exit")
         import :: c_int
         implicit none
         integer(c_int), value :: code
      end subroutine leave
   end interface

   type(torch_pymodule) :: warm
   character(:), allocatable :: failure
   character(400) :: folder, form, file
   integer(c_int) :: child, status
   integer :: commands, answers, end_of_pipe

   call get_command_argument(1, folder)
   call warm%load(trim(folder) // "/warm.py")
   open (newunit=commands, file=trim(folder) // "/commands0", action="read")
   open (newunit=answers, file=trim(folder) // "/answers0", action="write")
   do
      read (commands, *, iostat=end_of_pipe) form, file, device
      if (end_of_pipe /= 0) exit
      flush (answers)
      child = fork()
      if (child == 0) then
         call play(trim(file), trim(form), 0, open_it, failure)
         write (answers, "(a)") on_a_line(failure)
         flush (answers)
         call leave(0)
      end if
      child = waitpid(child, status, 0)
      if (status /= 0) then
         write (answers, "(a, i0)") "ended: ", status
         flush (answers)
      end if
   end do
end program play_scripts
