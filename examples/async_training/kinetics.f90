! SPDX-License-Identifier: MIT
!> The model: two substances on a ring of cells. They react in each cell, by the Brusselator (Prigogine and Lefever
!> 1968), and diffuse between the cells. The reaction is stiff and takes nearly all of the time. All is dimensionless.
module kinetics
   use, intrinsic :: iso_fortran_env, only: dp => real64
   implicit none
   private

   public :: dp, start, react, diffuse

   real(dp), parameter :: a = 1, b = 3
   !> Of both substances, in squared cells per unit of time
   real(dp), parameter :: diffusivity(2) = [0.4_dp, 0.1_dp]

contains

   !> Concentrations near the steady state of the reaction, (2, cells)
   subroutine start(c)
      real(dp), intent(out) :: c(:, :)

      call random_init(repeatable=.true., image_distinct=.false.)
      call random_number(c)
      c(1, :) = a*(0.5_dp + c(1, :))
      c(2, :) = b/a*(0.5_dp + c(2, :))
   end subroutine start

   !> The reaction in each cell for a time dt: Runge-Kutta of fourth order, in as many steps as its stiffness needs
   subroutine react(c, dt, steps)
      real(dp), intent(inout) :: c(:, :)
      real(dp), intent(in) :: dt
      integer, intent(in) :: steps

      real(dp), dimension(2) :: k1, k2, k3, k4
      real(dp) :: h
      integer :: i, step

      h = dt/steps
      do i = 1, size(c, 2)
         do step = 1, steps
            k1 = rate(c(:, i))
            k2 = rate(c(:, i) + h/2*k1)
            k3 = rate(c(:, i) + h/2*k2)
            k4 = rate(c(:, i) + h*k3)
            c(:, i) = c(:, i) + h/6*(k1 + 2*k2 + 2*k3 + k4)
         end do
      end do
   end subroutine react

   pure function rate(c)
      real(dp), intent(in) :: c(2)
      real(dp) :: rate(2)

      rate(1) = a + c(1)**2*c(2) - (b + 1)*c(1)
      rate(2) = b*c(1) - c(1)**2*c(2)
   end function rate

   !> Diffusion for a time dt, explicit
   subroutine diffuse(c, dt)
      real(dp), intent(inout) :: c(:, :)
      real(dp), intent(in) :: dt

      integer :: i

      do i = 1, 2
         c(i, :) = c(i, :) + dt*diffusivity(i)*(cshift(c(i, :), 1) - 2*c(i, :) + cshift(c(i, :), -1))
      end do
   end subroutine diffuse

end module kinetics
