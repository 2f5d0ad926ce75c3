! SPDX-License-Identifier: MIT
!> What the program does when: a line "model" or "call", begin and end in seconds of the system clock.
module timeline
   use, intrinsic :: iso_fortran_env, only: int64
   use kinetics, only: dp
   implicit none
   private

   public :: now, begin_timeline, add_to_timeline, end_timeline

   integer :: unit = -1

contains

   !> On Linux these are the seconds of Python's time.monotonic()
   real(dp) function now()
      integer(int64) :: ticks, rate

      call system_clock(ticks, rate)
      now = real(ticks, dp)/real(rate, dp)
   end function now

   subroutine begin_timeline(file)
      character(len=*), intent(in) :: file

      open (newunit=unit, file=file, action="write", status="replace")
      write (unit, "(a)") "what,begin,end"
   end subroutine begin_timeline

   subroutine add_to_timeline(what, begin, end)
      character(len=*), intent(in) :: what
      real(dp), intent(in) :: begin, end

      if (unit /= -1) write (unit, "(a, 2(',', f0.6))") what, begin, end
   end subroutine add_to_timeline

   subroutine end_timeline()
      if (unit /= -1) close (unit)
      unit = -1
   end subroutine end_timeline

end module timeline
