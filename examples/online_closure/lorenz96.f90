! SPDX-License-Identifier: MIT
!> The two-scale system of Lorenz (1996): K slow variables X on a circle, each coupled to J fast ones Y.
!>
!>     dX(k)/dt   = -X(k-1) (X(k-2) - X(k+1)) - X(k) + F - (h c / b) sum_j Y(j,k)
!>     dY(j,k)/dt = -c b Y(j+1,k) (Y(j+2,k) - Y(j-1,k)) - c Y(j,k) + (h c / b) X(k)
!>
!> The last term of the first equation is what a model without the fast variables lacks: the sub-grid tendency.
module lorenz96
   implicit none
   private

   public :: dp, full_model, slow_tendency, gather_stencils, stencil

   integer, parameter :: dp = kind(1d0)

   !> A column of the closure's input: X(k-2), X(k-1), X(k), X(k+1), X(k+2)
   integer, parameter :: stencil = 5

   !> State and parameters of the full model; Wilks (2005) takes h = 1, b = c = 10
   type :: full_model
      integer :: nslow = 8, nfast = 32
      real(dp) :: forcing = 20, h = 1, b = 10, c = 10
      real(dp) :: time = 0
      !> Slow variables, (nslow)
      real(dp), allocatable :: x(:)
      !> Fast variables of all sectors in one circle, (nslow*nfast): Y(j+J,k) = Y(j,k+1)
      real(dp), allocatable :: y(:)
   contains
      procedure :: start
      procedure :: advance
      procedure :: subgrid
   end type full_model

contains

   !> Take a rough initial state and run until it lies on the attractor
   subroutine start(self, nslow, nfast, forcing, spin_up, dt)
      class(full_model), intent(inout) :: self
      integer, intent(in) :: nslow, nfast
      real(dp), intent(in) :: forcing
      !> Time that is run and thrown away, and the time step
      real(dp), intent(in) :: spin_up, dt

      integer :: i

      self%nslow = nslow
      self%nfast = nfast
      self%forcing = forcing
      ! Not a random start: the runs are to be repeatable with every compiler
      self%x = [(forcing*(0.3_dp + 0.4_dp*sin(2.7_dp*i)), i=1, nslow)]
      self%y = [(0.1_dp*cos(1.3_dp*i), i=1, nslow*nfast)]
      call self%advance(nint(spin_up/dt), dt)
      self%time = 0
   end subroutine start

   !> The term that the fast variables add to dX/dt
   function subgrid(self) result(tendency)
      class(full_model), intent(in) :: self
      real(dp) :: tendency(self%nslow)

      tendency = -(self%h*self%c/self%b)*sum(reshape(self%y, [self%nfast, self%nslow]), dim=1)
   end function subgrid

   !> Run `steps` steps of the classical Runge-Kutta method of fourth order
   subroutine advance(self, steps, dt)
      class(full_model), intent(inout) :: self
      integer, intent(in) :: steps
      real(dp), intent(in) :: dt

      ! Stage weights; each stage starts from the old state plus `reach` times the slope before it
      real(dp), parameter :: weight(4) = [1, 2, 2, 1]/6.0_dp, reach(4) = [0.0_dp, 0.5_dp, 0.5_dp, 1.0_dp]
      real(dp), dimension(self%nslow) :: xs, dx, xsum
      real(dp), dimension(self%nslow*self%nfast) :: ys, dy, ysum
      integer :: step, stage

      do step = 1, steps
         dx = 0
         dy = 0
         xsum = self%x
         ysum = self%y
         do stage = 1, 4
            xs = self%x + (reach(stage)*dt)*dx
            ys = self%y + (reach(stage)*dt)*dy
            call both_tendencies(self%nslow, self%nfast, self%forcing, self%h, self%b, self%c, xs, ys, dx, dy)
            xsum = xsum + (weight(stage)*dt)*dx
            ysum = ysum + (weight(stage)*dt)*dy
         end do
         self%x = xsum
         self%y = ysum
      end do
      self%time = self%time + steps*dt
   end subroutine advance

   subroutine both_tendencies(nslow, nfast, forcing, h, b, c, x, y, dx, dy)
      integer, intent(in) :: nslow, nfast
      real(dp), intent(in) :: forcing, h, b, c
      real(dp), intent(in) :: x(nslow), y(nslow*nfast)
      real(dp), intent(out) :: dx(nslow), dy(nslow*nfast)

      ! The circle opened, with its neighbours repeated at both ends: the loop below has no wrap-around and vectorises
      real(dp) :: ring(0:nslow*nfast + 2)
      integer :: i, k, n

      n = nslow*nfast
      ring(0) = y(n)
      ring(1:n) = y
      ring(n + 1:n + 2) = y(1:2)

      call slow_tendency(nslow, 1, forcing, x, dx)
      do k = 1, nslow
         dx(k) = dx(k) - (h*c/b)*sum(y((k - 1)*nfast + 1:k*nfast))
         do i = (k - 1)*nfast + 1, k*nfast
            dy(i) = -c*b*ring(i + 1)*(ring(i + 2) - ring(i - 1)) - c*ring(i) + (h*c/b)*x(k)
         end do
      end do
   end subroutine both_tendencies

   !> What the slow variables do by themselves: the right-hand side of dX/dt without the sub-grid tendency
   pure subroutine slow_tendency(nslow, members, forcing, x, dx)
      integer, intent(in) :: nslow, members
      real(dp), intent(in) :: forcing
      real(dp), intent(in) :: x(nslow, members)
      real(dp), intent(out) :: dx(nslow, members)

      real(dp) :: ring(-1:nslow + 1)
      integer :: k, member

      do member = 1, members
         ring(-1:0) = x(nslow - 1:nslow, member)
         ring(1:nslow) = x(:, member)
         ring(nslow + 1) = x(1, member)
         do k = 1, nslow
            dx(k, member) = -ring(k - 1)*(ring(k - 2) - ring(k + 1)) - ring(k) + forcing
         end do
      end do
   end subroutine slow_tendency

   !> Every slow variable with its two neighbours on either side: one column of `columns` for each
   pure subroutine gather_stencils(x, columns)
      real(dp), intent(in) :: x(:, :)
      !> (stencil, size(x))
      real(dp), intent(out) :: columns(:, :)

      integer :: i

      do i = 1, stencil
         columns(i, :) = reshape(cshift(x, i - 3), [size(x)])
      end do
   end subroutine gather_stencils

end module lorenz96
