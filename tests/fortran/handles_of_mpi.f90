! SPDX-License-Identifier: MIT
!> Handles as the older interfaces of MPI have them: integers. A module of its own, since mpi and mpi_f08 do not mix
module handles_of_mpi
   use ftn_pytorch, only : torch_pymodule
   use mpi
   implicit none
   private

   public :: load_with_integer, load_with_null

contains

   subroutine load_with_integer(model, file_name)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: file_name

      integer :: communicator

      communicator = MPI_COMM_WORLD
      call model%load(file_name, communicator=communicator)
      call model%load(file_name, communicator=MPI_COMM_WORLD)
   end subroutine load_with_integer

   subroutine load_with_null(model, file_name, stat, errmsg)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: file_name
      integer, intent(out) :: stat
      character(:), allocatable, intent(out) :: errmsg

      call model%load(file_name, communicator=MPI_COMM_NULL, stat=stat, errmsg=errmsg)
   end subroutine load_with_null
end module handles_of_mpi
