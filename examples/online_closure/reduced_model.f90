! SPDX-License-Identifier: MIT
!> The model one can afford: the slow variables of an ensemble, with a closure in place of the fast ones.
module reduced_model
   use lorenz96, only: dp, slow_tendency
   use closures, only: closure
   implicit none
   private

   public :: advance_ensemble

contains

   !> Run `steps` Runge-Kutta steps. All members advance together, so a stage asks the closure only once
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

end module reduced_model
