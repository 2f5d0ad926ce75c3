! SPDX-License-Identifier: MIT
!> The periodic square, cut into one rectangle of cells for each rank.
module domains
   use, intrinsic :: iso_fortran_env, only : real64
   use mpi_f08
   implicit none
   private

   public :: domain, halo

   !> Cells beyond each edge that belong to other ranks
   integer, parameter :: halo = 2

   type :: domain
      !> All ranks, in the order of their rectangles
      type(MPI_Comm) :: communicator
      integer :: rank
      !> Cells of the square in each direction, cells of this rank, and those before them
      integer :: cells(2), n(2), offset(2)
      !> Ranks at the lower and at the upper edge in each direction
      integer, private :: lower(2), upper(2)
   contains
      procedure :: exchange
      procedure :: total
      procedure :: write_field
      procedure :: read_field
   end type domain

   interface domain
      module procedure new_domain
   end interface domain

contains

   !> `cells` in each direction
   function new_domain(cells) result(self)
      integer, intent(in) :: cells
      type(domain) :: self

      integer :: ranks, blocks(2), place(2), direction

      call MPI_Comm_size(MPI_COMM_WORLD, ranks)
      blocks(:) = 0
      call MPI_Dims_create(ranks, 2, blocks)
      call MPI_Cart_create(MPI_COMM_WORLD, 2, blocks, [.true., .true.], .true., self%communicator)
      call MPI_Comm_rank(self%communicator, self%rank)
      call MPI_Cart_coords(self%communicator, self%rank, 2, place)
      self%cells(:) = cells
      do direction = 1, 2
         ! Blocks differ by one cell where the number of cells cannot be divided
         self%offset(direction) = self%cells(direction)*place(direction)/blocks(direction)
         self%n(direction) = self%cells(direction)*(place(direction) + 1)/blocks(direction) - self%offset(direction)
         call MPI_Cart_shift(self%communicator, direction - 1, 1, self%lower(direction), self%upper(direction))
      end do
   end function new_domain

   !> Fill the halo of a field with the cells of the neighbours
   subroutine exchange(self, q)
      class(domain), intent(in) :: self
      real(real64), intent(inout) :: q(1 - halo:, 1 - halo:)

      associate (nx => self%n(1), ny => self%n(2), above => self%upper, below => self%lower)
         call pass(q(nx - halo + 1:nx, 1:ny), above(1), q(1 - halo:0, 1:ny), below(1))
         call pass(q(1:halo, 1:ny), below(1), q(nx + 1:nx + halo, 1:ny), above(1))
         call pass(q(1:nx, ny - halo + 1:ny), above(2), q(1:nx, 1 - halo:0), below(2))
         call pass(q(1:nx, 1:halo), below(2), q(1:nx, ny + 1:ny + halo), above(2))
      end associate

   contains

      subroutine pass(strip, target_rank, taken, source)
         real(real64), intent(in) :: strip(:, :)
         integer, intent(in) :: target_rank, source
         real(real64), intent(out) :: taken(:, :)

         real(real64) :: sent(size(strip, 1), size(strip, 2)), received(size(strip, 1), size(strip, 2))

         sent = strip
         call MPI_Sendrecv(sent, size(sent), MPI_REAL8, target_rank, 0, received, size(received), MPI_REAL8, source, &
            0, self%communicator, MPI_STATUS_IGNORE)
         taken = received
      end subroutine pass
   end subroutine exchange

   !> Sum over the cells of all ranks
   real(real64) function total(self, values)
      class(domain), intent(in) :: self
      real(real64), intent(in) :: values(:, :)

      call MPI_Allreduce(sum(values), total, 1, MPI_REAL8, MPI_SUM, self%communicator)
   end function total

   !> The cells of all ranks into one file, which any number of ranks can read
   subroutine write_field(self, name, q)
      class(domain), intent(in) :: self
      character(*), intent(in) :: name
      real(real64), intent(in) :: q(:, :)

      type(MPI_File) :: file

      file = opened(self, name, MPI_MODE_CREATE + MPI_MODE_WRONLY)
      call MPI_File_write_all(file, q, size(q), MPI_REAL8, MPI_STATUS_IGNORE)
      call MPI_File_close(file)
   end subroutine write_field

   subroutine read_field(self, name, q)
      class(domain), intent(in) :: self
      character(*), intent(in) :: name
      real(real64), intent(out) :: q(:, :)

      type(MPI_File) :: file

      file = opened(self, name, MPI_MODE_RDONLY)
      call MPI_File_read_all(file, q, size(q), MPI_REAL8, MPI_STATUS_IGNORE)
      call MPI_File_close(file)
   end subroutine read_field

   !> A file in which this rank sees its own cells only
   function opened(self, name, mode) result(file)
      class(domain), intent(in) :: self
      character(*), intent(in) :: name
      integer, intent(in) :: mode
      type(MPI_File) :: file

      type(MPI_Datatype) :: part

      call MPI_File_open(self%communicator, name, mode, MPI_INFO_NULL, file)
      call MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL)
      call MPI_Type_create_subarray(2, self%cells, self%n, self%offset, MPI_ORDER_FORTRAN, MPI_REAL8, part)
      call MPI_Type_commit(part)
      call MPI_File_set_view(file, 0_MPI_OFFSET_KIND, MPI_REAL8, part, "native", MPI_INFO_NULL)
      call MPI_Type_free(part)
   end function opened
end module domains
