! SPDX-License-Identifier: MIT
!> A program whose compiler options change the floating-point environment gets the numbers of plain Python, bit for bit,
!> and finds its environment as it was: traps, flush-to-zero, rounding, exceptions that were raised, random numbers.
!>
!> Built with and without -ffast-math, which turns flush-to-zero on at the start of the program, and -ffpe-trap.
program test_plain_python
   use, intrinsic :: ieee_arithmetic, only : ieee_get_rounding_mode, ieee_round_type, operator(==)
   use, intrinsic :: ieee_exceptions, only : ieee_all, ieee_get_flag, ieee_get_halting_mode, ieee_set_flag
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type :: environment
      logical :: raised(5), halting(5), gradual
      type(ieee_round_type) :: rounding
   end type environment

   type(torch_pymodule) :: model
   type(environment) :: before
   character(:), allocatable :: reason
   real(real64) :: numbers(10), expected(10)
   integer :: i, stat
   logical :: same

   ! The same random numbers, with the library in between
   call random_init(repeatable=.true., image_distinct=.false.)
   call random_number(expected)
   call random_init(repeatable=.true., image_distinct=.false.)
   before = now()
   call model%load(script("plain_python.py"), stat=stat, errmsg=reason)
   call expect_status(stat, FTN_PYTORCH_OK, "load", reason)
   call expect_unchanged("load")
   do i = 1, 4
      call random_number(numbers(2*i - 1:2*i))
      call model%call("is_as_in_plain_python", outputs=[torch_out(same)], stat=stat, errmsg=reason)
      call expect_status(stat, FTN_PYTORCH_OK, "a call", reason)
      call expect(same, "numbers are those of plain Python")
      call expect_unchanged("a call")
      call model%call("fails", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a failure")
      call expect_unchanged("a failure")
      call model%call("in_threads", stat=stat, errmsg=reason)
      call expect_status(stat, FTN_PYTORCH_OK, "threads of the script", reason)
      call expect_unchanged("threads of the script")
   end do
   call random_number(numbers(9:10))
   call expect(all(numbers == expected), "random numbers of Fortran go on")
   call finish()

contains

   !> Whether small numbers are flushed to zero is tried, because flang has no ieee_get_underflow_mode
   type(environment) function now()
      real(real64), volatile :: half

      now%raised = .false.
      now%halting = .false.
      call ieee_get_flag(ieee_all, now%raised)
      call ieee_get_halting_mode(ieee_all, now%halting)
      call ieee_get_rounding_mode(now%rounding)
      half = tiny(half)
      half = half/2
      now%gradual = half > 0
      call ieee_set_flag(ieee_all, now%raised)
   end function now

   subroutine expect_unchanged(when)
      character(*), intent(in) :: when
      type(environment) :: found

      found = now()
      call expect(all(found%raised .eqv. before%raised), "exceptions after " // when)
      call expect(all(found%halting .eqv. before%halting), "traps after " // when)
      call expect(found%gradual .eqv. before%gradual, "flush-to-zero after " // when)
      call expect(found%rounding == before%rounding, "rounding after " // when)
   end subroutine expect_unchanged
end program test_plain_python
