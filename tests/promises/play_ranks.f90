! SPDX-License-Identifier: MIT
!> Scripts of the corpus on ranks, one after the other: mpirun -n 2 play_ranks FOLDER reads lines "PER FILE DEVICE" of
!> the pipes FOLDER/commands0 and FOLDER/commands1, and answers in FOLDER/answers0 and FOLDER/answers1.
module who_loads
   use ftn_pytorch
   use mpi_f08
   implicit none
   private

   public :: per, open_it

   character(20), save :: per = ""

contains

   subroutine open_it(model, file, stat, errmsg)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: file
      integer, intent(out) :: stat
      character(:), allocatable, intent(inout) :: errmsg

      call model%load(file, communicator=MPI_COMM_WORLD, per=trim(per), stat=stat, errmsg=errmsg)
   end subroutine open_it
end module who_loads

program play_ranks
   use ftn_pytorch
   use mpi_f08
   use playing, only : on_a_line, play
   use who_loads, only : per, open_it
   implicit none

   character(:), allocatable :: failure
   character(400) :: folder, file
   character(1) :: name
   integer :: commands, answers, end_of_pipe, rank

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   write (name, "(i0)") rank
   call get_command_argument(1, folder)
   open (newunit=commands, file=trim(folder) // "/commands" // name, action="read")
   open (newunit=answers, file=trim(folder) // "/answers" // name, action="write")
   do
      read (commands, *, iostat=end_of_pipe) per, file
      if (end_of_pipe /= 0) exit
      call play(trim(file), "arrays", rank, open_it, failure)
      write (answers, "(a)") on_a_line(failure)
      flush (answers)
   end do
   call MPI_Finalize()
end program play_ranks
