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
      !> Ranks along y and x
      integer :: py = 1, px = 1
      !> Whether there is a wall
      logical :: is_at_south = .true., is_at_north = .true.
      !> Coarse cells of all ranks, of this one, and those before it; each is factor x factor cells of the model
      integer :: all_nx = 0, all_ny = 0, nx = 0, ny = 0, x0 = 0, y0 = 0, factor = 1
      integer, private :: west = 0, east = 0, south = 0, north = 0
   contains
      procedure :: cut
      procedure :: exchange
      procedure :: whole
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
      self%is_at_south = place(1) == 0
      self%is_at_north = place(1) == dims(1) - 1
      self%all_ny = cells(1)
      self%all_nx = cells(2)
      self%factor = factor
      ! Parts that are as equal as they can be
      self%y0 = place(1)*cells(1)/dims(1)
      self%ny = (place(1) + 1)*cells(1)/dims(1) - self%y0
      self%x0 = place(2)*cells(2)/dims(2)
      self%nx = (place(2) + 1)*cells(2)/dims(2) - self%x0
   end subroutine cut

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

   !> Fields of all ranks, on all ranks
   function whole(self, fields) result(all_cells)
      class(subdomain), intent(in) :: self
      !> Coarse cells of this rank, (nx, ny, fields)
      real(real64), intent(in) :: fields(:, :, :)
      real(real64), allocatable :: all_cells(:, :, :)

      allocate (all_cells(self%all_nx, self%all_ny, size(fields, 3)), source=0.0_real64)
      all_cells(self%x0 + 1:self%x0 + self%nx, self%y0 + 1:self%y0 + self%ny, :) = fields
      call MPI_Allreduce(MPI_IN_PLACE, all_cells, size(all_cells), MPI_DOUBLE_PRECISION, MPI_SUM, self%comm)
   end function whole
end module process_grid
