! SPDX-License-Identifier: MIT
!> MPI is finalized before or after the last call, or not by us but by mpirun: nothing hangs and nothing is lost, also
!> with a process group of torch.distributed that nobody destroys. A failure of one rank ends all by a handler.
program test_end_mpi
   use mpi_f08
   use check, only : script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model
   character(20) :: way
   integer :: rank

   call get_command_argument(1, way)
   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call model%load(script("ending.py"), communicator=MPI_COMM_WORLD)
   call model%call("prints")
   if (index(way, "group_") == 1) call model%call("joins")
   select case (way)
   case ("after", "group_after")
      call MPI_Finalize()
   case ("before", "group_before")
      call MPI_Finalize()
      call model%call("prints")
      call model%free()
   case ("handler")
      call ftn_pytorch_on_error(abort_all)
      if (rank == 1) call model%call("fails")
      call MPI_Barrier(MPI_COMM_WORLD)
   case ("abort")
      if (rank == 1) call MPI_Abort(MPI_COMM_WORLD, 9)
      call MPI_Barrier(MPI_COMM_WORLD)
   end select

contains

   !> The others would wait for this rank
   subroutine abort_all(code, text)
      use, intrinsic :: iso_fortran_env, only : error_unit
      integer, intent(in) :: code
      character(*), intent(in) :: text

      write (error_unit, "(a, i0, 2a)") "rank ", rank, " fails: ", text
      flush (error_unit)
      call MPI_Abort(MPI_COMM_WORLD, code)
   end subroutine abort_all
end program test_end_mpi
