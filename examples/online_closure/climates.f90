! SPDX-License-Identifier: MIT
!> The climate of a run: what X is on average, how far and how fast it varies.
module climates
   use closures, only: closure
   use lorenz96, only: dp
   use reduced_model, only: advance_ensemble
   use settings, only: reduced_dt, reduced_steps
   use statistics, only: mean, variance, standard_error, autocorrelation
   implicit none
   private

   public :: climate, climate_of, climate_of_thirds, average_climate, run_freely, cut_into_series
   public :: lags, bins, bin_start, bin_width

   !> Autocorrelation is followed this many samples; the distribution has this many bins
   integer, parameter :: lags = 60, bins = 72
   real(dp), parameter :: bin_start = -16, bin_width = 0.5_dp

   type :: climate
      real(dp) :: mean = 0, variance = 0, correlation(0:lags) = 0, density(bins) = 0
   end type climate

contains

   !> Let an ensemble run on, first without and then with recording: series, (nslow*members, samples)
   subroutine run_freely(subgrid, forcing, x, skipped, series)
      class(closure), intent(inout) :: subgrid
      real(dp), intent(in) :: forcing
      real(dp), intent(inout) :: x(:, :)
      integer, intent(in) :: skipped
      real(dp), intent(out) :: series(:, :)

      integer :: sample

      call advance_ensemble(x, forcing, subgrid, skipped*reduced_steps, reduced_dt)
      do sample = 1, size(series, 2)
         call advance_ensemble(x, forcing, subgrid, reduced_steps, reduced_dt)
         series(:, sample) = reshape(x, [size(x)])
      end do
   end subroutine run_freely

   !> The same shape from one long run: each piece of it is taken for a member
   subroutine cut_into_series(x, series)
      !> (nslow, samples)
      real(dp), intent(in) :: x(:, :)
      real(dp), intent(out) :: series(:, :)

      integer :: piece, n

      n = size(x, 1)
      do piece = 1, size(series, 1)/n
         series((piece - 1)*n + 1:piece*n, :) = x(:, (piece - 1)*size(series, 2) + 1:piece*size(series, 2))
      end do
   end subroutine cut_into_series

   pure function climate_of(series) result(found)
      real(dp), intent(in) :: series(:, :)
      type(climate) :: found

      real(dp), allocatable :: values(:)
      integer :: i, bin

      allocate (values, source=reshape(series, [size(series)]))
      found%mean = mean(values)
      found%variance = variance(values)
      found%correlation = autocorrelation(series, lags)
      do i = 1, size(values)
         bin = 1 + floor((values(i) - bin_start)/bin_width)
         if (bin >= 1 .and. bin <= bins) found%density(bin) = found%density(bin) + 1
      end do
      found%density = found%density/(size(values)*bin_width)
   end function climate_of

   !> Three climates, of as many parts of the ensemble: their scatter tells how well a run of this length knows them
   pure function climate_of_thirds(series) result(found)
      real(dp), intent(in) :: series(:, :)
      type(climate) :: found(3)

      integer :: i, n

      n = size(series, 1)/3
      found = [(climate_of(series((i - 1)*n + 1:i*n, :)), i=1, 3)]
   end function climate_of_thirds

   !> Mean of several climates, and the standard error of that mean
   pure subroutine average_climate(several, average, error)
      type(climate), intent(in) :: several(:)
      type(climate), intent(out) :: average, error

      integer :: i

      average%mean = mean(several%mean)
      average%variance = mean(several%variance)
      error%mean = standard_error(several%mean)
      error%variance = standard_error(several%variance)
      do i = 0, lags
         average%correlation(i) = mean(several%correlation(i))
         error%correlation(i) = standard_error(several%correlation(i))
      end do
      do i = 1, bins
         average%density(i) = mean(several%density(i))
         error%density(i) = standard_error(several%density(i))
      end do
   end subroutine average_climate

end module climates
