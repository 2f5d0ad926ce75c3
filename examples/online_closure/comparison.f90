! SPDX-License-Identifier: MIT
!> What closures are worth in the model that uses them: forecasts from states of the full model.
module comparison
   use closures, only: closure, closure_pointer
   use ftn_pytorch, only: torch_in
   use lorenz96, only: dp, slow_tendency
   use picture, only: keep
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

      real(dp), allocatable :: error(:, :, :)
      real(dp) :: limit
      integer :: starts(members), i

      starts = [(1 + (i - 1)*spacing, i=1, members)]
      limit = sqrt(variance(reshape(truth, [size(truth)])))/2
      allocate (error(members, leads, size(all)), valid(members, size(all)))
      do i = 1, size(all)
         call run_forecasts(all(i)%p, forcing, truth, starts, error(:, :, i))
         valid(:, i) = valid_times(error(:, :, i), limit, interval)
      end do
      call keep([torch_in("error", error), torch_in("valid", valid), torch_in("limit", limit), torch_in("fits", fits), &
                 torch_in("interval", interval)])
   end subroutine compare_forecasts

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
   subroutine run_forecasts(subgrid, forcing, truth, starts, error)
      class(closure), intent(inout) :: subgrid
      real(dp), intent(in) :: forcing
      !> Slow variables of the full model, (nslow, samples), and the samples to start from
      real(dp), intent(in) :: truth(:, :)
      integer, intent(in) :: starts(:)
      !> Root-mean-square error of the forecasts over the circle, (members, leads)
      real(dp), intent(out) :: error(:, :)

      real(dp) :: x(size(truth, 1), size(starts))
      integer :: lead

      x = truth(:, starts)
      do lead = 1, size(error, 2)
         call advance_ensemble(x, forcing, subgrid, reduced_steps, reduced_dt)
         error(:, lead) = sqrt(sum((x - truth(:, starts + lead))**2, dim=1)/size(x, 1))
      end do
   end subroutine run_forecasts

   !> The reduced model: `steps` Runge-Kutta steps of the slow variables, with a closure in place of the fast ones. All
   !> members advance together, so a stage asks the closure only once
   subroutine advance_ensemble(x, forcing, subgrid, steps, dt)
      !> Slow variables, (nslow, members)
      real(dp), intent(inout) :: x(:, :)
      real(dp), intent(in) :: forcing
      class(closure), intent(inout) :: subgrid
      integer, intent(in) :: steps
      real(dp), intent(in) :: dt

      real(dp), parameter :: weight(4) = [1, 2, 2, 1]/6.0_dp, reach(4) = [0.0_dp, 0.5_dp, 0.5_dp, 1.0_dp]
      real(dp), allocatable :: stage_x(:, :), slope(:, :), tendency(:, :), total(:, :)
      integer :: step, stage

      allocate (stage_x, slope, tendency, total, mold=x)
      do step = 1, steps
         slope = 0
         total = x
         do stage = 1, 4
            stage_x = x + (reach(stage)*dt)*slope
            call subgrid%evaluate(stage_x, tendency)
            call slow_tendency(size(x, 1), size(x, 2), forcing, stage_x, slope)
            slope = slope + tendency
            total = total + (weight(stage)*dt)*slope
         end do
         x = total
      end do
   end subroutine advance_ensemble

end module comparison
