! SPDX-License-Identifier: MIT
!> A tracer in a flow: dq/dt + div(v q) = kappa laplace(q) + (pattern - q)/time, on a square of side 1.
!>
!> The flux through a face is the velocity times the tracer there. Upwind takes it from the cell that the flow comes
!> from. A correction is added to that, which depends on two differences: behind that cell, and across the face.
module transport
   use, intrinsic :: iso_fortran_env, only : real64
   use domains, only : domain, halo
   implicit none
   private

   public :: correction, flow, new_flow, step, differences, limited, nothing, new_tracer

   real(real64), parameter :: pi = acos(-1.0_real64), kappa = 1e-5_real64, forcing_time = 0.5_real64

   !> Velocities at the lower faces of the cells in both directions, and the pattern that the tracer returns to
   type :: flow
      real(real64) :: width, time_step
      real(real64), allocatable :: u(:, :), v(:, :), pattern(:, :)
   end type flow

   abstract interface
      !> What is added to the upwind value at each face, for the (2, number of faces) differences
      function correction(d) result(added)
         import :: real64
         implicit none
         real(real64), intent(in), target, contiguous :: d(:, :)
         real(real64) :: added(size(d, 2))
      end function correction
   end interface

contains

   !> A flow of eddies, from a stream function at the corners: what flows into a cell flows out of it
   function new_flow(on) result(self)
      type(domain), intent(in) :: on
      type(flow) :: self

      real(real64), allocatable :: psi(:, :)
      real(real64) :: x, y
      integer :: i, j

      self%width = 1.0_real64/maxval(on%cells)
      self%time_step = 0.25_real64*self%width
      allocate (psi(on%n(1) + 1, on%n(2) + 1), self%pattern(on%n(1), on%n(2)))
      do j = 1, on%n(2) + 1
         do i = 1, on%n(1) + 1
            x = 2*pi*(on%offset(1) + i - 1)/on%cells(1)
            y = 2*pi*(on%offset(2) + j - 1)/on%cells(2)
            psi(i, j) = (sin(x)*sin(y) + 0.4_real64*sin(2*x + 1)*cos(3*y))/(4*pi)
            if (i <= on%n(1) .and. j <= on%n(2)) self%pattern(i, j) = sign(1.0_real64, sin(2*x + y)*cos(y - 0.3_real64))
         end do
      end do
      associate (nx => on%n(1), ny => on%n(2))
         self%u = (psi(:, 2:) - psi(:, :ny))/self%width
         self%v = -(psi(2:, :) - psi(:nx, :))/self%width
      end associate
   end function new_flow

   !> The tracer at the beginning, with room for the halo
   subroutine new_tracer(q, on, by)
      real(real64), allocatable, intent(out) :: q(:, :)
      type(domain), intent(in) :: on
      type(flow), intent(in) :: by

      allocate (q(1 - halo:on%n(1) + halo, 1 - halo:on%n(2) + halo), source=0.0_real64)
      q(1:on%n(1), 1:on%n(2)) = by%pattern
   end subroutine new_tracer

   !> One time step by Heun's method, with or without the forcing
   subroutine step(q, on, by, added, forced)
      type(domain), intent(in) :: on
      real(real64), intent(inout) :: q(1 - halo:on%n(1) + halo, 1 - halo:on%n(2) + halo)
      type(flow), intent(in) :: by
      procedure(correction) :: added
      logical, intent(in) :: forced

      real(real64) :: first(on%n(1), on%n(2)), second(on%n(1), on%n(2))
      real(real64) :: next(1 - halo:on%n(1) + halo, 1 - halo:on%n(2) + halo)

      associate (nx => on%n(1), ny => on%n(2))
         first(:, :) = tendency(q, on, by, added, forced)
         next(:, :) = q
         next(1:nx, 1:ny) = q(1:nx, 1:ny) + by%time_step*first
         second(:, :) = tendency(next, on, by, added, forced)
         q(1:nx, 1:ny) = q(1:nx, 1:ny) + 0.5_real64*by%time_step*(first + second)
      end associate
   end subroutine step

   function tendency(q, on, by, added, forced) result(dq)
      type(domain), intent(in) :: on
      real(real64), intent(inout) :: q(1 - halo:on%n(1) + halo, 1 - halo:on%n(2) + halo)
      type(flow), intent(in) :: by
      procedure(correction) :: added
      logical, intent(in) :: forced
      real(real64) :: dq(on%n(1), on%n(2))

      real(real64) :: face(size(by%u) + size(by%v)), fx(on%n(1) + 1, on%n(2)), fy(on%n(1), on%n(2) + 1)

      associate (nx => on%n(1), ny => on%n(2), h => by%width)
         face(:) = added(differences(q, on, by))
         fx(:, :) = reshape(face(:size(fx)), shape(fx)) + merge(q(0:nx, 1:ny), q(1:nx + 1, 1:ny), by%u > 0)
         fy(:, :) = reshape(face(size(fx) + 1:), shape(fy)) + merge(q(1:nx, 0:ny), q(1:nx, 1:ny + 1), by%v > 0)
         fx(:, :) = by%u*fx - kappa/h*(q(1:nx + 1, 1:ny) - q(0:nx, 1:ny))
         fy(:, :) = by%v*fy - kappa/h*(q(1:nx, 1:ny + 1) - q(1:nx, 0:ny))
         dq(:, :) = (fx(:nx, :) - fx(2:, :) + fy(:, :ny) - fy(:, 2:))/h
         if (forced) dq(:, :) = dq + (by%pattern - q(1:nx, 1:ny))/forcing_time
      end associate
   end function tendency

   !> For each face, first those between columns, then those between rows: the difference behind the cell that the flow
   !> comes from, and the difference across the face, both in the direction of the flow
   function differences(q, on, by) result(d)
      type(domain), intent(in) :: on
      real(real64), intent(inout) :: q(1 - halo:on%n(1) + halo, 1 - halo:on%n(2) + halo)
      type(flow), intent(in) :: by
      real(real64) :: d(2, size(by%u) + size(by%v))

      integer :: i, j, face

      call on%exchange(q)
      face = 0
      do j = 1, on%n(2)
         do i = 1, on%n(1) + 1
            face = face + 1
            d(:, face) = along(q(i - 2:i + 1, j), by%u(i, j))
         end do
      end do
      do j = 1, on%n(2) + 1
         do i = 1, on%n(1)
            face = face + 1
            d(:, face) = along(q(i, j - 2:j + 1), by%v(i, j))
         end do
      end do
   end function differences

   !> `cells`: two before the face and two behind it
   pure function along(cells, velocity) result(d)
      real(real64), intent(in) :: cells(4), velocity
      real(real64) :: d(2)

      if (velocity > 0) then
         d(:) = [cells(2) - cells(1), cells(3) - cells(2)]
      else
         d(:) = [cells(3) - cells(4), cells(2) - cells(3)]
      end if
   end function along

   !> What makes upwind third order where the tracer is smooth, limited where it is not (Koren 1993)
   function limited(d) result(added)
      real(real64), intent(in), target, contiguous :: d(:, :)
      real(real64) :: added(size(d, 2))

      associate (a => abs(d(1, :)), b => abs(d(2, :)))
         added = 0.5_real64*sign(min(2*a, (b + 2*a)/3, 2*b), d(2, :))
      end associate
      where (d(1, :)*d(2, :) <= 0) added = 0
   end function limited

   !> Upwind as it is
   function nothing(d) result(added)
      real(real64), intent(in), target, contiguous :: d(:, :)
      real(real64) :: added(size(d, 2))

      added = 0*d(1, :)
   end function nothing
end module transport
