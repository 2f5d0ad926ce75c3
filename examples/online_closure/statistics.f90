! SPDX-License-Identifier: MIT
!> Scores of predictions, and a clock.
module statistics
   use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
   use, intrinsic :: iso_fortran_env, only: int64
   use lorenz96, only: dp
   implicit none
   private

   public :: seconds, skill, mean, variance, standard_error, valid_times

   !> Running sums from which R2 = 1 - (mean squared error)/(variance of the target) follows; without samples it is
   !> not a number
   type :: skill
      private
      real(dp) :: n = 0, target_sum = 0, target_squares = 0, error_squares = 0
   contains
      procedure :: add
      procedure :: r2
   end type skill

contains

   !> On the clock of the wall
   real(dp) function seconds()
      integer(int64) :: ticks, rate

      call system_clock(ticks, rate)
      seconds = real(ticks, dp)/rate
   end function seconds

   pure subroutine add(self, prediction, target)
      class(skill), intent(inout) :: self
      real(dp), intent(in) :: prediction(:), target(:)

      self%n = self%n + size(target)
      self%target_sum = self%target_sum + sum(target)
      self%target_squares = self%target_squares + sum(target**2)
      self%error_squares = self%error_squares + sum((prediction - target)**2)
   end subroutine add

   pure real(dp) function r2(self)
      class(skill), intent(in) :: self

      if (self%n < 1) then
         r2 = ieee_value(r2, ieee_quiet_nan)
         return
      end if
      r2 = 1 - self%error_squares/(self%target_squares - self%target_sum**2/self%n)
   end function r2

   pure real(dp) function mean(values)
      real(dp), intent(in) :: values(:)

      mean = sum(values)/size(values)
   end function mean

   pure real(dp) function variance(values)
      real(dp), intent(in) :: values(:)

      variance = sum((values - mean(values))**2)/(size(values) - 1)
   end function variance

   !> Of the mean of independent values; zero where one value alone says nothing about it
   pure real(dp) function standard_error(values)
      real(dp), intent(in) :: values(:)

      standard_error = 0
      if (size(values) > 1) standard_error = sqrt(variance(values)/size(values))
   end function standard_error

   !> How long each member stays close: the lead time of its first error above `limit`, else the last lead time
   pure function valid_times(error, limit, interval) result(times)
      !> (members, samples), the first sample one interval after the start
      real(dp), intent(in) :: error(:, :)
      real(dp), intent(in) :: limit, interval
      real(dp) :: times(size(error, 1))

      integer :: first(size(error, 1))

      ! Not error > limit: a run that blew up holds NaN and has to fail here
      first = findloc(error <= limit, .false., dim=2)
      times = merge(first, size(error, 2), first > 0)*interval
   end function valid_times

end module statistics
