! SPDX-License-Identifier: MIT
!> Rotating shallow water on an Arakawa C-grid, with the energy-conserving scheme of Sadourny (1975) and RK3 in time.
module shallow_water
   use, intrinsic :: iso_fortran_env, only : real64
   use process_grid, only : halo, subdomain
   implicit none
   private

   public :: dx, water

   integer, parameter :: wp = real64
   real(wp), parameter :: f = 1e-4_wp         !< 1/s
   real(wp), parameter :: g = 0.1_wp          !< m/s2, reduced
   real(wp), parameter :: depth = 500         !< m
   real(wp), parameter :: dx = 5e3_wp         !< m
   real(wp), parameter :: viscosity = 30      !< m2/s
   real(wp), parameter :: dt = 200            !< s
   real(wp), parameter :: pi = acos(-1.0_wp)

   !> u(i, j) is at the east face of a cell, v(i, j) at its north face; velocities in m/s, h in m
   type :: water
      real(wp), allocatable :: u(:, :), v(:, :), h(:, :)
   contains
      procedure :: begin
      procedure :: step
      procedure, non_overridable :: vorticity
   end type water

contains

   !> At a north-east corner, 1/s
   pure real(wp) function vorticity(self, i, j)
      class(water), intent(in) :: self
      integer, intent(in) :: i, j

      vorticity = (self%v(i + 1, j) - self%v(i, j) - self%u(i, j + 1) + self%u(i, j))/dx
   end function vorticity

   !> Eddies in geostrophic balance, the same for every way to cut the domain
   subroutine begin(self, domain, seed)
      class(water), intent(out) :: self
      type(subdomain), intent(in) :: domain
      !> Each has eddies of its own
      integer, intent(in) :: seed

      integer, parameter :: waves = 60
      real(wp), allocatable :: psi(:, :)
      real(wp) :: amplitude, phase, x, y, k, l
      integer :: nx, ny, i, j, wave, number

      nx = domain%factor*domain%nx
      ny = domain%factor*domain%ny
      allocate (psi(-halo:nx + halo + 1, -halo:ny + halo + 1), source=0.0_wp)
      number = seed
      do wave = 1, waves
         k = 2*pi*nint(drawn(number)*8)/(domain%factor*domain%all_nx*dx)
         l = pi*(2 + nint(drawn(number)*12))/(domain%factor*domain%all_ny*dx)
         phase = 2*pi*drawn(number)
         amplitude = 5e-2_wp/hypot(k, l)
         do j = lbound(psi, 2), ubound(psi, 2)
            y = (domain%factor*domain%y0 + j)*dx
            do i = lbound(psi, 1), ubound(psi, 1)
               x = (domain%factor*domain%x0 + i)*dx
               psi(i, j) = psi(i, j) + amplitude*sin(k*x + phase)*sin(l*y)
            end do
         end do
      end do
      allocate (self%u(1 - halo:nx + halo, 1 - halo:ny + halo), source=0.0_wp)
      allocate (self%v, self%h, source=self%u)
      ! psi is at the north-east corners
      do j = 1, ny
         do i = 1, nx
            self%u(i, j) = -(psi(i, j) - psi(i, j - 1))/dx
            self%v(i, j) = (psi(i, j) - psi(i - 1, j))/dx
            self%h(i, j) = depth + f/g*(psi(i, j) + psi(i - 1, j) + psi(i, j - 1) + psi(i - 1, j - 1))/4
         end do
      end do
      call complete(self, domain)
   end subroutine begin

   !> Numbers in [0, 1) by a rule of our own, so that all compilers have the same
   real(wp) function drawn(number)
      integer, intent(inout) :: number

      number = modulo(number*1103 + 12345, 65536)
      drawn = number/65536.0_wp
   end function drawn

   !> One step in time
   subroutine step(self, domain)
      class(water), intent(inout) :: self
      type(subdomain), intent(in) :: domain

      type(water) :: stage
      real(wp), allocatable :: du(:, :), dv(:, :), dh(:, :)
      integer :: part

      allocate (du, dv, dh, mold=self%u)
      stage = water(self%u, self%v, self%h)
      do part = 3, 1, -1
         call tendencies(stage, du, dv, dh)
         stage%u = self%u + dt/part*du
         stage%v = self%v + dt/part*dv
         stage%h = self%h + dt/part*dh
         call complete(stage, domain)
      end do
      self%u = stage%u
      self%v = stage%v
      self%h = stage%h
   end subroutine step

   !> Halos from the neighbours, and what is beyond a wall: it slips, and nothing flows through it
   subroutine complete(self, domain)
      class(water), intent(inout) :: self
      type(subdomain), intent(in) :: domain

      integer :: n

      n = ubound(self%h, 2) - halo
      if (domain%is_at_north) self%v(:, n) = 0
      call domain%exchange(self%u)
      call domain%exchange(self%v)
      call domain%exchange(self%h)
      if (domain%is_at_south) then
         self%u(:, -1:0) = self%u(:, 2:1:-1)
         self%h(:, -1:0) = self%h(:, 2:1:-1)
         self%v(:, 0) = 0
         self%v(:, -1) = -self%v(:, 1)
      end if
      if (domain%is_at_north) then
         self%u(:, n + 1:n + 2) = self%u(:, n:n - 1:-1)
         self%h(:, n + 1:n + 2) = self%h(:, n:n - 1:-1)
         self%v(:, n + 1:n + 2) = -self%v(:, n - 1:n - 2:-1)
      end if
   end subroutine complete

   !> Changes with time, without halos
   subroutine tendencies(self, du, dv, dh)
      class(water), intent(in) :: self
      real(wp), allocatable, intent(inout) :: du(:, :), dv(:, :), dh(:, :)

      real(wp), allocatable :: mass_u(:, :), mass_v(:, :), potential(:, :), head(:, :)
      integer :: nx, ny, i, j

      nx = ubound(self%u, 1) - halo
      ny = ubound(self%u, 2) - halo
      allocate (mass_u, mass_v, potential, head, mold=self%u)
      du = 0
      dv = 0
      dh = 0
      associate (u => self%u, v => self%v, h => self%h)
         do j = 0, ny + 1
            do i = 0, nx + 1
               mass_u(i, j) = u(i, j)*(h(i, j) + h(i + 1, j))/2
               mass_v(i, j) = v(i, j)*(h(i, j) + h(i, j + 1))/2
               potential(i, j) = (f + self%vorticity(i, j))*4/ &
                  (h(i, j) + h(i + 1, j) + h(i, j + 1) + h(i + 1, j + 1))
               head(i, j) = g*h(i, j) + (u(i, j)**2 + u(i - 1, j)**2 + v(i, j)**2 + v(i, j - 1)**2)/4
            end do
         end do
         do j = 1, ny
            do i = 1, nx
               du(i, j) = (potential(i, j)*(mass_v(i, j) + mass_v(i + 1, j)) + &
                  potential(i, j - 1)*(mass_v(i, j - 1) + mass_v(i + 1, j - 1)))/4 - &
                  (head(i + 1, j) - head(i, j))/dx + &
                  viscosity*(u(i + 1, j) + u(i - 1, j) + u(i, j + 1) + u(i, j - 1) - 4*u(i, j))/dx**2
               dv(i, j) = -(potential(i, j)*(mass_u(i, j) + mass_u(i, j + 1)) + &
                  potential(i - 1, j)*(mass_u(i - 1, j) + mass_u(i - 1, j + 1)))/4 - &
                  (head(i, j + 1) - head(i, j))/dx + &
                  viscosity*(v(i + 1, j) + v(i - 1, j) + v(i, j + 1) + v(i, j - 1) - 4*v(i, j))/dx**2
               dh(i, j) = -(mass_u(i, j) - mass_u(i - 1, j) + mass_v(i, j) - mass_v(i, j - 1))/dx
            end do
         end do
      end associate
   end subroutine tendencies
end module shallow_water
