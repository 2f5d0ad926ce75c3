! SPDX-License-Identifier: MIT
!> Advection on a ring by a constant wind: one upwind step of second order, and its adjoint.
!>
!> The step is linear, so it is its own tangent. The adjoint is written by hand, as in any variational assimilation.
module advection
   use, intrinsic :: iso_fortran_env, only : real64
   implicit none
   private

   public :: advect, advect_adjoint

   !> Courant number: grid lengths that the wind blows in a step
   real(real64), parameter :: courant = 0.4_real64
   !> Weights of the point itself and of the two upstream of it (Beam and Warming)
   real(real64), parameter :: weights(0:2) = [1 - 1.5_real64*courant + 0.5_real64*courant**2, &
      2*courant - courant**2, 0.5_real64*courant**2 - 0.5_real64*courant]

contains

   !> One step of a field on the ring
   pure function advect(field) result(later)
      !> Field
      real(real64), intent(in) :: field(:)
      real(real64) :: later(size(field))

      later = weights(0)*field + weights(1)*cshift(field, -1) + weights(2)*cshift(field, -2)
   end function advect

   !> The adjoint of that step
   pure function advect_adjoint(later) result(field)
      !> Gradient with respect to the field after the step
      real(real64), intent(in) :: later(:)
      real(real64) :: field(size(later))

      field = weights(0)*later + weights(1)*cshift(later, 1) + weights(2)*cshift(later, 2)
   end function advect_adjoint
end module advection
