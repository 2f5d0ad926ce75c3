! SPDX-License-Identifier: MIT
!> With floating-point traps on, scripts compute NaN and infinity and losses are passed on; the traps are still on
!> afterwards, and no exception of the script is left behind.
program test_traps
   use, intrinsic :: ieee_arithmetic, only : ieee_is_finite, ieee_is_nan, ieee_quiet_nan, ieee_value
   use, intrinsic :: ieee_exceptions, only : ieee_divide_by_zero, ieee_get_flag, ieee_get_halting_mode, ieee_invalid, &
      ieee_overflow, ieee_set_flag, ieee_set_halting_mode, ieee_usual
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model
   logical :: halting(3), raised(3)

   call ieee_set_flag(ieee_usual, .false.)
   call ieee_set_halting_mode(ieee_usual, .true.)
   call model%load(script("losses.py"))
   call computes_with_traps_on()
   call passes_losses_on()
   call ieee_get_halting_mode(ieee_usual, halting)
   call expect(all(halting), "the traps are on as before")
   call ieee_get_flag(ieee_usual, raised)
   call expect(.not. any(raised), "no exception of the script is left behind")
   call ieee_set_halting_mode(ieee_usual, .false.)
   call finish()

contains

   subroutine computes_with_traps_on()
      real(real64) :: x(2), y(2, 3)
      integer :: i, stat

      x = [1, 2]
      do i = 1, 4
         call model%call("divide", [torch_in(x)], [torch_out(y)])
         call expect(all(ieee_is_nan(y(:, 1))), "0/0 is NaN")
         call expect(.not. any(ieee_is_finite(y(:, 2:3))), "1/0 and log 0 are infinite")
         call model%call("fails", [torch_in(x)], stat=stat)
         call expect(stat == FTN_PYTORCH_ERR_PYTHON, "an exception is reported")
      end do
   end subroutine computes_with_traps_on

   subroutine passes_losses_on()
      real(real64) :: x(1), target(1), double
      real(real32) :: single
      logical :: done

      x = 0
      target = 0.5
      done = model%train([torch_in(x)], [torch_in(target)], single)
      call expect(done .and. single == 0.5, "a loss in single precision")
      target = -huge(1d0)
      done = model%train([torch_in(x)], [torch_in(target)], double)
      call expect(double == -huge(1d0), "the largest loss in double precision")
      done = model%train([torch_in(x)], [torch_in(target)], single)
      call expect(.not. ieee_is_finite(single) .and. sign(1.0, single) < 0, "is infinite in single precision")
      target = ieee_value(1d0, ieee_quiet_nan)
      done = model%train([torch_in(x)], [torch_in(target)], single)
      call expect(ieee_is_nan(single), "NaN is passed on")
   end subroutine passes_losses_on

end program test_traps
