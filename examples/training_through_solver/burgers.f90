! SPDX-License-Identifier: MIT
!> Burgers' equation on a ring, u_t + (u**2/2)_x = nu u_xx + f(x): a finite-volume step of first order, and its adjoint.
!>
!> On a coarse grid the numerical flux (Lax and Friedrichs, with a fixed speed) smooths far too much.
module burgers
   use, intrinsic :: iso_fortran_env, only : real64
   implicit none
   private

   public :: step, step_adjoint, averaged

   !> Speed of the numerical flux: above all speeds that occur
   real(real64), parameter :: speed = 2.5_real64
   real(real64), parameter :: viscosity = 0.01_real64, circumference = 8*atan(1.0_real64)

contains

   !> One step of a field
   pure function step(u, dt) result(later)
      !> Averages of the cells
      real(real64), intent(in) :: u(:)
      !> Length of the step
      real(real64), intent(in) :: dt
      real(real64) :: later(size(u))

      real(real64) :: right(size(u)), flux(size(u)), dx
      integer :: i

      dx = circumference/size(u)
      right = cshift(u, 1)
      flux = (u**2 + right**2)/4 - speed/2*(right - u) - viscosity/dx*(right - u)
      later = u - dt/dx*(flux - cshift(flux, -1)) + dt*[(forcing((i - 0.5_real64)*dx), i=1, size(u))]
   end function step

   !> Gradient with respect to the field before a step, for that with respect to the field after it
   pure function step_adjoint(u, later, dt) result(gradient)
      !> Field before the step
      real(real64), intent(in) :: u(:)
      !> Gradient with respect to the field after it
      real(real64), intent(in) :: later(:)
      !> Length of the step
      real(real64), intent(in) :: dt
      real(real64) :: gradient(size(u))

      real(real64) :: of_flux(size(u)), dx

      dx = circumference/size(u)
      of_flux = -dt/dx*(later - cshift(later, 1))
      gradient = later + of_flux*(u/2 + speed/2 + viscosity/dx) &
         + cshift(of_flux, -1)*(u/2 - speed/2 - viscosity/dx)
   end function step_adjoint

   !> What drives the flow
   pure function forcing(x) result(f)
      real(real64), intent(in) :: x
      real(real64) :: f

      f = 0.3_real64*sin(x) + 0.2_real64*cos(2*x)
   end function forcing

   !> A field on a coarser grid
   pure function averaged(u, cells) result(coarse)
      !> Averages of fine cells
      real(real64), intent(in) :: u(:)
      !> Number of coarse cells, which divides that of the fine ones
      integer, intent(in) :: cells
      real(real64) :: coarse(cells)

      coarse = sum(reshape(u, [size(u)/cells, cells]), 1)/(size(u)/cells)
   end function averaged
end module burgers
