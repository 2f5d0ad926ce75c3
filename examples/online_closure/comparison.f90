! SPDX-License-Identifier: MIT
!> What closures are worth in the model that uses them: forecasts from states of the full model, and long runs.
module comparison
   use climates, only: climate, climate_of, climate_of_thirds, average_climate, run_freely, cut_into_series, &
      lags, bins, bin_start, bin_width
   use closures, only: closure, closure_pointer
   use ftn_pytorch, only: torch_in
   use lorenz96, only: dp
   use picture, only: painter
   use reduced_model, only: advance_ensemble
   use settings, only: interval, reduced_dt, reduced_steps
   use statistics, only: mean, variance, standard_error, valid_times
   implicit none
   private

   public :: compare_forecasts, print_scores, compare_climates, members, samples_needed

   !> Forecasts: how many, samples from one start to the next, and samples that they last
   integer, parameter :: members = 1500, spacing = 50, leads = 120
   !> Samples of the full model that forecasts start from and are compared with
   integer, parameter :: samples_needed = members*spacing + leads
   !> Free runs: members, samples that are skipped and samples that count
   integer, parameter :: free_members = 60, skipped = 200, counted = 800

contains

   !> Forecasts with every closure, from the same states
   subroutine compare_forecasts(all, fits, forcing, truth, paint, valid)
      !> Polynomial fits first, then networks
      type(closure_pointer), intent(in) :: all(:)
      integer, intent(in) :: fits
      real(dp), intent(in) :: forcing
      !> Slow variables of the full model, (nslow, samples_needed)
      real(dp), intent(in) :: truth(:, :)
      type(painter), intent(inout) :: paint
      !> Valid time of each forecast, (members, closures)
      real(dp), allocatable, intent(out) :: valid(:, :)

      real(dp), allocatable :: x(:, :, :), error(:, :, :), shown_network(:, :), shown_truth(:, :)
      real(dp) :: limit
      integer :: starts(members), i, shown

      starts = [(1 + (i - 1)*spacing, i=1, members)]
      limit = sqrt(variance(reshape(truth, [size(truth)])))/2
      allocate (x(size(truth, 1), members, 0:leads), error(members, leads, size(all)), valid(members, size(all)))
      do i = 1, size(all)
         call run_forecasts(all(i)%p, forcing, truth, starts, x, error(:, :, i))
         valid(:, i) = valid_times(error(:, :, i), limit, interval)
      end do

      ! Shown is neither the best nor the worst forecast of the last network, but the one in the middle
      shown = middle(valid(:, size(all)))
      allocate (shown_network, source=x(:, shown, :))
      allocate (shown_truth, source=truth(:, starts(shown):starts(shown) + leads))
      call paint%keep([torch_in("shown_network", shown_network), torch_in("shown_truth", shown_truth), &
                       torch_in("shown_valid", valid(shown, size(all))), torch_in("error", error), &
                       torch_in("valid", valid), torch_in("limit", limit), torch_in("fits", fits), &
                       torch_in("interval", interval)])
   end subroutine compare_forecasts

   !> Position of a median
   pure integer function middle(values)
      real(dp), intent(in) :: values(:)

      integer :: i

      middle = 1
      do i = 1, size(values)
         if (count(values < values(i)) <= size(values)/2 .and. count(values <= values(i)) > size(values)/2) middle = i
      end do
   end function middle

   subroutine print_scores(all, fits, r2, valid)
      type(closure_pointer), intent(in) :: all(:)
      integer, intent(in) :: fits
      real(dp), intent(in) :: r2(:), valid(:, :)

      real(dp) :: by_seed(size(all) - fits)
      integer :: i

      print "(a)", "", "On later data: R2 of the tendency, and how long forecasts stay valid (+- standard errors)"
      print "(t38, a, i0, a)", "R2           time, mean of ", members, " starts"
      do i = 1, fits
         print "(3x, a, t33, f8.3, t52, f7.2, a, f5.2, a)", trim(all(i)%p%name), r2(i), &
            mean(valid(:, i)), " +-", standard_error(valid(:, i)), "  over the starts"
      end do
      by_seed = sum(valid(:, fits + 1:), dim=1)/members
      print "(3x, a, i0, a, t33, f8.3, a, f6.3, t52, f7.2, a, f5.2, a)", "network, ", size(by_seed), " seeds", &
         mean(r2(fits + 1:)), " +-", standard_error(r2(fits + 1:)), mean(by_seed), " +-", &
         standard_error(sum(valid(:, fits + 1:), dim=2)/size(by_seed)), "  over the starts"
      print "(t59, a, f5.2, a)", " +-", standard_error(by_seed), "  over the seeds"
   end subroutine print_scores

   !> Long runs of the reduced model have to look like the full one, not to follow it
   subroutine compare_climates(fits, nets, forcing, truth, paint)
      type(closure_pointer), intent(in) :: fits(:), nets(:)
      real(dp), intent(in) :: forcing
      real(dp), intent(in) :: truth(:, :)
      type(painter), intent(inout) :: paint

      type(climate) :: seeds(size(nets)), average(size(fits) + 2), error(size(fits) + 2)
      real(dp), allocatable :: series(:, :), density(:, :), correlation(:, :)
      integer :: i, pieces

      print "(a)", "", "Climate of X (+- standard errors: network over the seeds, others over three parts of the run)"
      print "(t36, a)", "mean           variance     autocorr. at lag 0.5    at lag 1"

      pieces = size(truth, 2)/counted
      allocate (series(size(truth, 1)*pieces, counted))
      call cut_into_series(truth, series)
      call average_climate(climate_of_thirds(series), average(1), error(1))
      call print_climate("full model", average(1), error(1))
      do i = 1, size(fits)
         call free_run(fits(i)%p, series)
         call average_climate(climate_of_thirds(series), average(1 + i), error(1 + i))
         call print_climate(fits(i)%p%name, average(1 + i), error(1 + i))
      end do
      do i = 1, size(nets)
         call free_run(nets(i)%p, series)
         seeds(i) = climate_of(series)
      end do
      i = size(average)
      call average_climate(seeds, average(i), error(i))
      call print_climate(nets(1)%p%name, average(i), error(i))

      allocate (density(bins, i), correlation(0:lags, i))
      do i = 1, size(average)
         density(:, i) = average(i)%density
         correlation(:, i) = average(i)%correlation
      end do
      call paint%keep([torch_in("density", density), torch_in("correlation", correlation), &
                       torch_in("bin_start", bin_start), torch_in("bin_width", bin_width)])

   contains

      subroutine free_run(subgrid, series)
         class(closure), intent(inout) :: subgrid
         real(dp), allocatable, intent(inout) :: series(:, :)

         real(dp) :: x(size(truth, 1), free_members)
         integer :: member

         x = truth(:, [(1 + (member - 1)*spacing, member=1, free_members)])
         if (allocated(series)) deallocate (series)
         allocate (series(size(x), counted))
         call run_freely(subgrid, forcing, x, skipped, series)
      end subroutine free_run

   end subroutine compare_climates

   subroutine print_climate(name, average, error)
      character(len=*), intent(in) :: name
      type(climate), intent(in) :: average, error

      ! Lags are samples
      integer, parameter :: half = nint(0.5_dp/interval), one = nint(1/interval)

      print "(3x, a, t32, f8.3, a, f6.3, f9.2, a, f5.2, 2(f10.3, a, f6.3))", trim(name), &
         average%mean, " +-", error%mean, average%variance, " +-", error%variance, &
         average%correlation(half), " +-", error%correlation(half), &
         average%correlation(one), " +-", error%correlation(one)
   end subroutine print_climate

   !> Start the reduced model from states of the full one and compare the two
   subroutine run_forecasts(subgrid, forcing, truth, starts, x, error)
      class(closure), intent(inout) :: subgrid
      real(dp), intent(in) :: forcing
      !> Slow variables of the full model, (nslow, samples), and the samples to start from
      real(dp), intent(in) :: truth(:, :)
      integer, intent(in) :: starts(:)
      !> Forecasts, (nslow, members, 0:leads), and their root-mean-square error over the circle, (members, leads)
      real(dp), intent(out) :: x(:, :, 0:), error(:, :)

      integer :: lead

      x(:, :, 0) = truth(:, starts)
      do lead = 1, ubound(x, 3)
         x(:, :, lead) = x(:, :, lead - 1)
         call advance_ensemble(x(:, :, lead), forcing, subgrid, reduced_steps, reduced_dt)
         error(:, lead) = sqrt(sum((x(:, :, lead) - truth(:, starts + lead))**2, dim=1)/size(x, 1))
      end do
   end subroutine run_forecasts

end module comparison
