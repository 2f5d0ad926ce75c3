! SPDX-License-Identifier: MIT
!> What a coarse model would see of the water, and what it would miss: the convergence of the eddy flux of vorticity.
module coarse_grid
   use, intrinsic :: iso_fortran_env, only : real64
   use process_grid, only : halo, subdomain
   use shallow_water, only : dx, water
   implicit none
   private

   public :: coarsen

   integer, parameter :: wp = real64

contains

   !> Averages over boxes
   subroutine coarsen(fine, domain, seen, missed)
      type(water), intent(in) :: fine
      type(subdomain), intent(in) :: domain
      !> (nx, ny, 3): velocities and vorticity in coarse cells
      real(wp), allocatable, intent(out) :: seen(:, :, :)
      !> (nx, ny): what the flux between coarse cells lacks of the vorticity's convergence, 1/s2
      real(wp), allocatable, intent(out) :: missed(:, :)

      !> Vorticity at the corners of cells, and fluxes of it through their faces
      real(wp), allocatable :: z(:, :), flux_x(:, :), flux_y(:, :)
      integer :: nx, ny, i, j

      nx = domain%factor*domain%nx
      ny = domain%factor*domain%ny
      allocate (z(0:nx, 0:ny), flux_x(0:nx, ny), flux_y(nx, 0:ny), seen(domain%nx, domain%ny, 3))
      do j = 0, ny
         z(:, j) = [(fine%vorticity(i, j), i=0, nx)]
      end do
      associate (u => fine%u(0:nx, 1:ny), v => fine%v(1:nx, 0:ny))
         seen(:, :, 1) = box_average((u(2:, :) + u(:nx, :))/2)
         seen(:, :, 2) = box_average((v(:, 2:) + v(:, :ny))/2)
         flux_x = u*(z(:, 1:) + z(:, :ny - 1))/2
         flux_y = v*(z(1:, :) + z(:nx - 1, :))/2
      end associate
      seen(:, :, 3) = box_average((z(1:, 1:) + z(:nx - 1, 1:) + z(1:, :ny - 1) + z(:nx - 1, :ny - 1))/4)
      missed = -box_average((flux_x(1:, :) - flux_x(:nx - 1, :) + flux_y(:, 1:) - flux_y(:, :ny - 1))/dx) + &
         convergence_of_coarse(seen)

   contains

      pure function box_average(field) result(average)
         real(wp), intent(in) :: field(:, :)
         real(wp) :: average(domain%nx, domain%ny)

         integer :: a, b, n

         n = domain%factor
         do b = 1, domain%ny
            do a = 1, domain%nx
               average(a, b) = sum(field(n*(a - 1) + 1:n*a, n*(b - 1) + 1:n*b))/n**2
            end do
         end do
      end function box_average

      !> Divergence of the flux that a coarse model has, by centred differences
      function convergence_of_coarse(fields) result(divergence)
         real(wp), intent(in) :: fields(:, :, :)
         real(wp) :: divergence(domain%nx, domain%ny)

         real(wp) :: flux(1 - halo:domain%nx + halo, 1 - halo:domain%ny + halo)
         integer :: axis, a, b

         divergence = 0
         do axis = 1, 2
            flux = 0
            flux(1:domain%nx, 1:domain%ny) = fields(:, :, axis)*fields(:, :, 3)
            call domain%exchange(flux)
            ! nothing flows through a wall
            if (domain%is_at_south) flux(:, 0) = -flux(:, 1)
            if (domain%is_at_north) flux(:, domain%ny + 1) = -flux(:, domain%ny)
            do b = 1, domain%ny
               do a = 1, domain%nx
                  divergence(a, b) = divergence(a, b) + merge(flux(a + 1, b) - flux(a - 1, b), &
                     flux(a, b + 1) - flux(a, b - 1), axis == 1)/(2*dx*domain%factor)
               end do
            end do
         end do
      end function convergence_of_coarse
   end subroutine coarsen
end module coarse_grid
