! SPDX-License-Identifier: MIT
!> A clock, and what a person wants to know of many times.
module bench_timing
   use, intrinsic :: iso_fortran_env, only : int64, real64
   implicit none
   private

   public :: now, print_statistics

contains

   !> Nanoseconds since some moment
   integer(int64) function now()
      integer(int64) :: count, rate

      call system_clock(count, rate)
      now = nint(real(count, real64)*(1e9_real64/real(rate, real64)), int64)
   end function now

   !> Minimum, mean, median, 99th percentile and maximum in microseconds
   subroutine print_statistics(name, nanoseconds)
      !> What was measured
      character(*), intent(in) :: name
      !> Its times
      integer(int64), intent(in) :: nanoseconds(:)

      integer(int64) :: sorted(size(nanoseconds)), held
      integer :: i, j, n

      n = size(nanoseconds)
      sorted = nanoseconds
      do i = 2, n
         held = sorted(i)
         do j = i - 1, 1, -1
            if (sorted(j) <= held) exit
            sorted(j + 1) = sorted(j)
         end do
         sorted(j + 1) = held
      end do
      print "(a12, 5(2x, a, f14.3), a)", name, "min", sorted(1)/1e3_real64, "mean", sum(sorted)/(n*1e3_real64), &
         "median", (sorted((n + 1)/2) + sorted(n/2 + 1))/2e3_real64, "p99", &
         sorted(max(1, ceiling(0.99*n)))/1e3_real64, "max", sorted(n)/1e3_real64, "  us"
   end subroutine print_statistics
end module bench_timing
