! SPDX-License-Identifier: MIT
!> Lorenz (1996) with two scales: slow X(k), and fast Y(:, k) for each. A closure takes the place of Y.
module lorenz96
   use, intrinsic :: iso_fortran_env, only: real64
   implicit none
   private
   public :: wp, slow, fast, advance, coupling, stencils

   integer, parameter :: wp = real64
   integer, parameter :: slow = 8, fast = 16
   real(wp), parameter :: forcing = 20, h = 1, c = 10, b = 10, dt = 0.002_wp

contains

   !> A step of Runge-Kutta
   pure subroutine advance(z, closure)
      !> X, and Y behind it where there is no closure
      real(wp), intent(inout) :: z(:)
      !> What Y would do to X
      real(wp), intent(in), optional :: closure(slow)
      real(wp), dimension(size(z)) :: k1, k2, k3, k4

      k1 = tendency(z, closure)
      k2 = tendency(z + dt/2*k1, closure)
      k3 = tendency(z + dt/2*k2, closure)
      k4 = tendency(z + dt*k3, closure)
      z = z + dt/6*(k1 + 2*k2 + 2*k3 + k4)
   end subroutine advance

   pure function tendency(z, closure) result(dz)
      real(wp), intent(in) :: z(:)
      real(wp), intent(in), optional :: closure(slow)
      real(wp) :: dz(size(z))

      associate (x => z(:slow), y => z(slow + 1:))
         dz(:slow) = -cshift(x, -1)*(cshift(x, -2) - cshift(x, 1)) - x + forcing
         if (present(closure)) then
            dz(:slow) = dz(:slow) + closure
         else
            dz(:slow) = dz(:slow) + coupling(z)
            dz(slow + 1:) = -c*b*cshift(y, 1)*(cshift(y, 2) - cshift(y, -1)) - c*y &
                            + h*c/b*reshape(spread(x, 1, fast), [slow*fast])
         end if
      end associate
   end function tendency

   !> What Y does to each X: the target of the closure
   pure function coupling(z) result(u)
      real(wp), intent(in) :: z(:)
      real(wp) :: u(slow)

      u = -h*c/b*sum(reshape(z(slow + 1:), [fast, slow]), dim=1)
   end function coupling

   !> X(k - 2), ..., X(k + 2) for each k: the inputs of the closure
   pure function stencils(z) result(x)
      real(wp), intent(in) :: z(:)
      real(wp) :: x(5, slow)
      integer :: i

      do i = 1, 5
         x(i, :) = cshift(z(:slow), i - 3)
      end do
   end function stencils
end module lorenz96
