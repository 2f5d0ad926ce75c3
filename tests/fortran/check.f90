! SPDX-License-Identifier: MIT
!> What every Fortran test needs: an assertion that prints what failed, and the end of the test.
module check
   use, intrinsic :: iso_c_binding, only : c_intptr_t, c_ptr
   use, intrinsic :: iso_fortran_env, only : int64
   implicit none
   private

   public :: expect, expect_status, expect_text, finish, script, address_of, is_mapped, threads_of_process, &
      with_descriptors

   integer, save :: failures = 0, passed = 0

contains

   !> Count a failure and go on
   subroutine expect(condition, what)
      !> What should be true
      logical, intent(in) :: condition
      !> Printed if it is not
      character(*), intent(in) :: what

      if (condition) then
         passed = passed + 1
      else
         failures = failures + 1
         print "(2a)", "FAILED: ", what
      end if
   end subroutine expect

   !> A status, and the reason if it is another one; with part also what the call said
   subroutine expect_status(stat, expected, what, errmsg, part)
      !> What the call returned
      integer, intent(in) :: stat
      !> What it should have returned
      integer, intent(in) :: expected
      !> Printed if they differ
      character(*), intent(in) :: what
      !> What the call said
      character(:), allocatable, intent(in), optional :: errmsg
      !> A text that errmsg should contain
      character(*), intent(in), optional :: part

      call expect(stat == expected, what)
      if (stat == expected) then
         if (present(part)) call expect_text(errmsg, part, what)
         return
      end if
      print "(2(a, i0))", "   status ", stat, " instead of ", expected
      if (present(errmsg)) then
         if (allocated(errmsg)) print "(2a)", "   ", errmsg
      end if
   end subroutine expect_status

   !> Whether a file whose name contains a text is mapped into this process (Linux)
   logical function is_mapped(name)
      !> Part of the name of the file
      character(*), intent(in) :: name
      character(4096) :: line
      integer :: unit, status

      is_mapped = .false.
      open (newunit=unit, file="/proc/self/maps", action="read", status="old")
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         is_mapped = is_mapped .or. index(line, name) > 0
      end do
      close (unit)
   end function is_mapped

   !> How many threads this process has (Linux)
   integer function threads_of_process()
      character(64) :: line
      integer :: unit, status

      threads_of_process = 0
      open (newunit=unit, file="/proc/self/status", action="read", status="old")
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         if (line(:8) == "Threads:") read (line(9:), *) threads_of_process
      end do
      close (unit)
   end function threads_of_process

   !> A text that contains another
   subroutine expect_text(text, part, what)
      !> The whole text
      character(*), intent(in) :: text
      !> What it should contain
      character(*), intent(in) :: part
      !> Printed if it does not
      character(*), intent(in) :: what

      call expect(index(text, part) > 0, what)
      if (index(text, part) == 0) print "(4a)", "   no '", part, "' in: ", text
   end subroutine expect_text

   !> End of the test: exit code 1 if anything failed
   subroutine finish()
      if (failures > 0) then
         print "(i0, a)", failures, " failed"
         error stop 1
      end if
      print "(i0, a)", passed, " passed"
   end subroutine finish

   !> Path of a script of the tests
   function script(name) result(path)
      !> File name
      character(*), intent(in) :: name
      character(:), allocatable :: path

      integer :: length

      call get_environment_variable("FPT_TEST_SCRIPTS", length=length)
      if (length == 0) error stop "FPT_TEST_SCRIPTS must name the folder of the scripts"
      allocate (character(length) :: path)
      call get_environment_variable("FPT_TEST_SCRIPTS", value=path)
      path = path // "/" // name
   end function script

   !> Whether torch_in takes anything and pointers may have strides; the argument "ranks" says that this compiler cannot
   function with_descriptors() result(with)
      logical :: with

      character(5) :: word

      call get_command_argument(1, word)
      with = word /= "ranks"
   end function with_descriptors

   !> An address as the number that Python's data_ptr() gives
   function address_of(pointer) result(address)
      !> Of c_loc
      type(c_ptr), intent(in) :: pointer
      integer(int64) :: address

      address = int(transfer(pointer, 0_c_intptr_t), int64)
   end function address_of
end module check
