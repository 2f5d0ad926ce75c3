! SPDX-License-Identifier: MIT
!> 4D-Var with a learnt model error: the field at the beginning of a window is found from a poor first guess and few
!> observations. The forecast model is advection in Fortran; what it lacks was learnt by a network, whose tangent and
!> adjoint the library computes.
program assimilation
   use, intrinsic :: iso_fortran_env, only : real64
   use advection, only : advect
   use ftn_pytorch
   use variational, only : analyse, correlated, is_observed, observation_error
   use window, only : forecast, forecast_adjoint, forecast_tangent, is_corrected, network, points, steps
   implicit none

   integer, parameter :: samples = 256, epochs = 600
   real(real64) :: truth(points, 0:steps), guess(points), analysis(points), uncorrected(points)
   real(real64) :: observations(points, 0:steps), costs(0:3), ignored(0:3)
   character(4096) :: script
   logical :: holds

   call get_command_argument(1, script)
   if (script == "") script = "error_model.py"
   call random_init(repeatable=.true., image_distinct=.false.)
   call network%load(script)
   call learn_what_is_missing()
   call run_truth()
   call check_the_adjoint()

   call analyse(guess, observations, analysis, costs)
   is_corrected = .false.
   call analyse(guess, observations, uncorrected, ignored)
   call report()
   if (.not. holds) error stop "the analysis is not as good as it should be"

contains

   !> Normally distributed numbers
   subroutine normal(x)
      real(real64), intent(out) :: x(:)

      real(real64) :: u(size(x)), v(size(x))

      call random_number(u)
      call random_number(v)
      x = sqrt(-2*log(1 - u))*cos(8*atan(1.0_real64)*v)
   end subroutine normal

   !> A smooth field between 0 and 1.4 or so
   subroutine random_field(field)
      real(real64), intent(out) :: field(points)

      real(real64) :: noise(points)

      call normal(noise)
      field = 0.6_real64 + 1.2_real64*correlated(noise)
   end subroutine random_field

   !> A step of nature: advection, growth to a limit, and some diffusion
   function nature(field) result(later)
      real(real64), intent(in) :: field(points)
      real(real64) :: later(points)

      later = advect(field)
      later = later + missing_from(later)
   end function nature

   !> What advection alone lacks
   pure function missing_from(advected) result(added)
      real(real64), intent(in) :: advected(points)
      real(real64) :: added(points)

      added = 0.05_real64*advected*(1 - advected) &
         + 0.08_real64*(cshift(advected, 1) - 2*advected + cshift(advected, -1))
   end function missing_from

   !> The network sees fields and what a step of nature added to their advection
   subroutine learn_what_is_missing()
      real(real64), target :: before(points, samples), added(points, samples)
      real(real64) :: field(points), error
      integer :: sample

      do sample = 1, samples
         call random_field(field)
         before(:, sample) = advect(field)
         added(:, sample) = nature(field) - before(:, sample)
      end do
      call network%call("learn", [torch_in(before), torch_in(added), torch_in(epochs)], [torch_out(error)])
      print "(a, f6.1, a)", "the network has learnt what advection lacks, but for ", 100*error, " %"
   end subroutine learn_what_is_missing

   subroutine run_truth()
      real(real64) :: noise(points)
      integer :: step

      call random_field(truth(:, 0))
      do step = 1, steps
         truth(:, step) = nature(truth(:, step - 1))
      end do
      call normal(noise)
      guess = truth(:, 0) + correlated(noise)
      do step = 0, steps
         call normal(noise)
         observations(:, step) = truth(:, step) + observation_error*noise
      end do
      print "(i0, 2(a, i0), a)", count(is_observed()), " observations of ", points, " points in ", steps, " steps"
   end subroutine run_truth

   !> <M dx, g> = <dx, M'g>, and the gradient against finite differences
   subroutine check_the_adjoint()
      real(real64), parameter :: tiny_step = 1e-6_real64
      real(real64), dimension(points, 0:steps) :: fields, other, changes, gradients
      real(real64) :: change(points), gradient(points), mismatch
      integer :: step

      call normal(change)
      do step = 0, steps
         call normal(gradients(:, step))
      end do
      call forecast(guess, fields)
      call forecast_tangent(fields, change, changes)
      call forecast_adjoint(fields, gradients, gradient)
      mismatch = abs(sum(changes*gradients)/sum(change*gradient) - 1)
      call forecast(guess + tiny_step*change, other)
      print "(a, es8.1)", "dot-product test of ", mismatch
      if (mismatch > 1e-12_real64) error stop "the adjoint does not fit the tangent"
      if (maxval(abs((other - fields)/tiny_step - changes)) > 1e-3_real64) error stop "the tangent is wrong"
   end subroutine check_the_adjoint

   pure function rms(field) result(value)
      real(real64), intent(in) :: field(:)
      real(real64) :: value

      value = sqrt(sum(field**2)/size(field))
   end function rms

   subroutine report()
      real(real64) :: errors(3)
      logical :: mask(points, 0:steps)
      integer :: unit, i

      errors = [rms(guess - truth(:, 0)), rms(uncorrected - truth(:, 0)), rms(analysis - truth(:, 0))]
      print "(a, 4f10.1)", "cost of the outer iterations:", costs
      print "(a, f6.3)", "error of the first guess:                  ", errors(1)
      print "(a, f6.3)", "error of 4D-Var with advection alone:      ", errors(2)
      print "(a, f6.3)", "error of 4D-Var with the learnt correction:", errors(3)
      holds = errors(3) < 0.25_real64*errors(1) .and. errors(3) < 0.5_real64*errors(2)

      mask = is_observed()
      open (newunit=unit, file="assimilation.csv", action="write", status="replace")
      write (unit, "(a)") "point,truth,guess,uncorrected,analysis,observation"
      do i = 1, points
         write (unit, "(i0, 4(',', f9.5), ',')", advance="no") i, truth(i, 0), guess(i), uncorrected(i), analysis(i)
         if (mask(i, 0)) write (unit, "(f9.5)", advance="no") observations(i, 0)
         write (unit, "()")
      end do
      close (unit)
   end subroutine report
end program assimilation
