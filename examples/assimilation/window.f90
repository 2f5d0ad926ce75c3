! SPDX-License-Identifier: MIT
!> The forecast over a window of time, its tangent and its adjoint: advection in Fortran, the correction in Python.
module window
   use, intrinsic :: iso_fortran_env, only : real64
   use advection, only : advect, advect_adjoint
   use ftn_pytorch
   implicit none
   private

   public :: forecast, forecast_tangent, forecast_adjoint, points, steps, network, is_corrected

   !> Points of the ring, steps of the window
   integer, parameter :: points = 64, steps = 60
   !> The script with the learnt correction
   type(torch_pymodule) :: network
   !> Whether forecasts use it
   logical :: is_corrected = .true.

contains

   !> The fields at the beginning and after every step
   subroutine forecast(start, fields)
      !> Field at the beginning
      real(real64), intent(in) :: start(points)
      !> All fields
      real(real64), intent(out) :: fields(points, 0:steps)

      real(real64), target :: advected(points), added(points)
      integer :: step

      fields(:, 0) = start
      added = 0
      do step = 1, steps
         advected = advect(fields(:, step - 1))
         if (is_corrected) call network%call("correction", [torch_in(advected)], [torch_out(added)])
         fields(:, step) = advected + added
      end do
   end subroutine forecast

   !> How a small change of the field at the beginning changes all fields
   subroutine forecast_tangent(fields, change, changes)
      !> Fields of the forecast that is changed
      real(real64), intent(in) :: fields(points, 0:steps)
      !> Change at the beginning
      real(real64), intent(in) :: change(points)
      !> All changes
      real(real64), intent(out) :: changes(points, 0:steps)

      real(real64), target :: advected(points), moved(points), added(points)
      integer :: step

      changes(:, 0) = change
      added = 0
      do step = 1, steps
         advected = advect(fields(:, step - 1))
         moved = advect(changes(:, step - 1))
         if (is_corrected) then
            call network%tangent("correction", [torch_in(advected)], [torch_in(moved)], [torch_out(added)])
         end if
         changes(:, step) = moved + added
      end do
   end subroutine forecast_tangent

   !> The gradient with respect to the field at the beginning, for gradients with respect to all fields
   subroutine forecast_adjoint(fields, gradients, gradient)
      !> Fields of the forecast
      real(real64), intent(in) :: fields(points, 0:steps)
      !> Gradients with respect to each field
      real(real64), intent(in) :: gradients(points, 0:steps)
      !> Their sum, brought back to the beginning
      real(real64), intent(out) :: gradient(points)

      real(real64), target :: advected(points), later(points), added(points)
      integer :: step

      later = gradients(:, steps)
      added = 0
      do step = steps, 1, -1
         advected = advect(fields(:, step - 1))
         if (is_corrected) then
            call network%adjoint("correction", [torch_in(advected)], [torch_in(later)], [torch_out(added)])
         end if
         later = advect_adjoint(later + added) + gradients(:, step - 1)
      end do
      gradient = later
   end subroutine forecast_adjoint
end module window
