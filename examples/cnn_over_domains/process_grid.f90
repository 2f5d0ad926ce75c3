! SPDX-License-Identifier: MIT
!> A domain that is cut into one rectangle for each rank: periodic in x, walls in y. Halos of the model, whole fields.
module process_grid
   use, intrinsic :: iso_fortran_env, only : real64
   use mpi_f08
   implicit none
   private

   public :: subdomain, halo

   !> Cells around a sub-domain that the model needs
   integer, parameter :: halo = 2

   type :: subdomain
      type(MPI_Comm) :: comm
      integer :: rank = 0
      !> Ranks along y and x, and the place of this one; rank = iy*px + ix
      integer :: py = 1, px = 1, iy = 0, ix = 0
      !> Coarse cells of all ranks, of this one, and those before it; each is factor x factor cells of the model
      integer :: all_nx = 0, all_ny = 0, nx = 0, ny = 0, x0 = 0, y0 = 0, factor = 1
      integer, private :: west = 0, east = 0, south = 0, north = 0
   contains
      procedure :: cut
      procedure :: exchange
      procedure :: whole
      procedure :: is_at_south
      procedure :: is_at_north
   end type subdomain

contains

   !> Cut a domain of coarse cells among the ranks
   subroutine cut(self, grid, cells, factor)
      class(subdomain), intent(out) :: self
      !> Ranks along y and x; 0: MPI chooses
      integer, intent(in) :: grid(2)
      !> Coarse cells along y and x, of all ranks
      integer, intent(in) :: cells(2)
      !> Cells of the model in a coarse one, along each axis
      integer, intent(in) :: factor

      integer :: ranks, dims(2), place(2)

      call MPI_Comm_size(MPI_COMM_WORLD, ranks)
      dims = grid
      call MPI_Dims_create(ranks, 2, dims)
      call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .true.], .false., self%comm)
      call MPI_Comm_rank(self%comm, self%rank)
      call MPI_Cart_coords(self%comm, self%rank, 2, place)
      call MPI_Cart_shift(self%comm, 0, 1, self%south, self%north)
      call MPI_Cart_shift(self%comm, 1, 1, self%west, self%east)
      self%py = dims(1)
      self%px = dims(2)
      self%iy = place(1)
      self%ix = place(2)
      self%all_ny = cells(1)
      self%all_nx = cells(2)
      self%factor = factor
      self%y0 = first(self%iy, self%py, self%all_ny)
      self%ny = first(self%iy + 1, self%py, self%all_ny) - self%y0
      self%x0 = first(self%ix, self%px, self%all_nx)
      self%nx = first(self%ix + 1, self%px, self%all_nx) - self%x0
   end subroutine cut

   !> Cells before a part, of parts that are as equal as they can be
   pure integer function first(part, parts, cells)
      integer, intent(in) :: part, parts, cells

      first = part*cells/parts
   end function first

   !> Fill the halo of a field from the neighbours. At walls it stays as it is
   subroutine exchange(self, field)
      class(subdomain), intent(in) :: self
      !> Cells with a halo
      real(real64), intent(inout) :: field(1 - halo:, 1 - halo:)

      integer :: nx, ny

      nx = ubound(field, 1) - halo
      ny = ubound(field, 2) - halo
      call swap(field(nx - halo + 1:nx, :), self%east, field(1 - halo:0, :), self%west)
      call swap(field(1:halo, :), self%west, field(nx + 1:, :), self%east)
      call swap(field(:, ny - halo + 1:ny), self%north, field(:, 1 - halo:0), self%south)
      call swap(field(:, 1:halo), self%south, field(:, ny + 1:), self%north)

   contains

      subroutine swap(strip, to, taken, from)
         real(real64), intent(in) :: strip(:, :)
         integer, intent(in) :: to, from
         real(real64), intent(inout) :: taken(:, :)

         real(real64) :: sent(size(strip, 1), size(strip, 2)), received(size(strip, 1), size(strip, 2))

         sent = strip
         received = taken
         call MPI_Sendrecv(sent, size(sent), MPI_DOUBLE_PRECISION, to, 0, received, size(received), &
            MPI_DOUBLE_PRECISION, from, 0, self%comm, MPI_STATUS_IGNORE)
         taken = received
      end subroutine swap
   end subroutine exchange

   !> A field of all ranks, on all ranks
   function whole(self, field) result(all_cells)
      class(subdomain), intent(in) :: self
      !> Coarse cells of this rank
      real(real64), intent(in) :: field(:, :)
      real(real64), allocatable :: all_cells(:, :)

      allocate (all_cells(self%all_nx, self%all_ny), source=0.0_real64)
      all_cells(self%x0 + 1:self%x0 + self%nx, self%y0 + 1:self%y0 + self%ny) = field
      call MPI_Allreduce(MPI_IN_PLACE, all_cells, size(all_cells), MPI_DOUBLE_PRECISION, MPI_SUM, self%comm)
   end function whole

   pure logical function is_at_south(self)
      class(subdomain), intent(in) :: self

      is_at_south = self%iy == 0
   end function is_at_south

   pure logical function is_at_north(self)
      class(subdomain), intent(in) :: self

      is_at_north = self%iy == self%py - 1
   end function is_at_north
end module process_grid
