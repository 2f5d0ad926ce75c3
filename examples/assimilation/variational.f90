! SPDX-License-Identifier: MIT
!> Incremental 4D-Var: which field at the beginning fits the first guess and the observations of a whole window best?
!>
!> The cost is (x - guess)' B^-1 (x - guess)/2 + sum (H x_t - y_t)^2/(2 sigma^2). Each outer iteration makes it a
!> quadratic function by the tangent of the forecast, and conjugate gradients find the minimum. The increment is
!> B^(1/2) v, which makes the first term v'v/2.
module variational
   use, intrinsic :: iso_fortran_env, only : real64
   use window, only : forecast, forecast_adjoint, forecast_tangent, points, steps
   implicit none
   private

   public :: analyse, correlated, is_observed, observation_error

   !> Standard deviations of observations and of the first guess, and how far errors of the latter reach, in points
   real(real64), parameter :: observation_error = 0.03_real64, guess_error = 0.25_real64, reach = 4
   integer, parameter :: outer_iterations = 3, inner_iterations = 25

contains

   !> Every fifth point is observed, at every tenth step
   pure function is_observed() result(mask)
      logical :: mask(points, 0:steps)

      integer :: step

      mask = .false.
      do step = 0, steps, 10
         mask(3::5, step) = .true.
      end do
   end function is_observed

   !> The field at the beginning that fits best
   subroutine analyse(guess, observations, analysis, costs)
      !> First guess
      real(real64), intent(in) :: guess(points)
      !> Observed values; others are not looked at
      real(real64), intent(in) :: observations(points, 0:steps)
      !> Best field
      real(real64), intent(out) :: analysis(points)
      !> Cost before each outer iteration and after the last
      real(real64), intent(out) :: costs(0:outer_iterations)

      real(real64) :: fields(points, 0:steps), departures(points, 0:steps), changes(points, 0:steps)
      real(real64) :: control(points), gradient(points), residual(points), direction(points), image(points)
      real(real64) :: increment(points), squares, alpha, before
      logical :: mask(points, 0:steps)
      integer :: outer, inner

      mask = is_observed()
      control = 0
      do outer = 1, outer_iterations + 1
         analysis = guess + correlated(control)
         call forecast(analysis, fields)
         departures = merge((fields - observations)/observation_error**2, 0.0_real64, mask)
         costs(outer - 1) = 0.5_real64*(sum(control**2) + sum(departures**2)*observation_error**2)
         if (outer > outer_iterations) exit
         call forecast_adjoint(fields, departures, gradient)
         residual = -(control + correlated(gradient))
         direction = residual
         increment = 0
         squares = sum(residual**2)
         do inner = 1, inner_iterations
            call forecast_tangent(fields, correlated(direction), changes)
            changes = merge(changes/observation_error**2, 0.0_real64, mask)
            call forecast_adjoint(fields, changes, gradient)
            image = direction + correlated(gradient)
            alpha = squares/sum(direction*image)
            increment = increment + alpha*direction
            residual = residual - alpha*image
            before = squares
            squares = sum(residual**2)
            if (squares < 1e-12_real64) exit
            direction = residual + squares/before*direction
         end do
         control = control + increment
      end do
   end subroutine analyse

   !> Half of the covariance of errors of the first guess, which is symmetric: bells along the ring
   pure function correlated(field) result(smooth)
      !> Independent numbers
      real(real64), intent(in) :: field(points)
      real(real64) :: smooth(points)

      real(real64) :: bell(0:points/2)
      integer :: distance

      bell = [(exp(-(distance/reach)**2), distance=0, points/2)]
      bell = guess_error*bell/sqrt(bell(0)**2 + 2*sum(bell(1:)**2))
      smooth = bell(0)*field
      do distance = 1, points/2 - 1
         smooth = smooth + bell(distance)*(cshift(field, distance) + cshift(field, -distance))
      end do
   end function correlated
end module variational
