! SPDX-License-Identifier: MIT
!> What closures are worth in the model that uses them: forecasts from states of the full model.
module comparison
   use closures, only: closure, closure_pointer
   use ftn_pytorch, only: torch_in
   use lorenz96, only: dp
   use picture, only: keep
   use reduced_model, only: advance_ensemble
   use settings, only: interval, reduced_dt, reduced_steps
   use statistics, only: mean, variance, standard_error, valid_times
   implicit none
   private

   public :: compare_forecasts, print_scores, samples_needed

   !> Forecasts: how many, samples from one start to the next, and samples that they last
   integer, parameter :: members = 1500, spacing = 50, leads = 120
   !> Samples of the full model that forecasts start from and are compared with
   integer, parameter :: samples_needed = members*spacing + leads

contains

   !> Forecasts with every closure, from the same states
   subroutine compare_forecasts(all, fits, forcing, truth, valid)
      !> Polynomial fits first, then networks
      type(closure_pointer), intent(in) :: all(:)
      integer, intent(in) :: fits
      real(dp), intent(in) :: forcing
      !> Slow variables of the full model, (nslow, samples_needed)
      real(dp), intent(in) :: truth(:, :)
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
      call keep([torch_in("shown_network", shown_network), torch_in("shown_truth", shown_truth), &
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
