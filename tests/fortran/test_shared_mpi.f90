! SPDX-License-Identifier: MIT
!> What the library warned of
module warnings_noted
   implicit none
   private

   public :: note_warning, warned

   character(:), allocatable :: warned

contains

   subroutine note_warning(text)
      character(*), intent(in) :: text

      warned = warned//text
   end subroutine note_warning
end module warnings_noted

!> Checkpoints of ranks that train one network: a restart on the same number of ranks, on more and on fewer.
!>
!>     mpirun -n <ranks> test_shared_mpi <case>...
program test_shared_mpi
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use mpi_f08
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use warnings_noted, only : note_warning, warned
   implicit none

   character(*), parameter :: prefix = "test_shared_mpi_", parts = prefix//"parts_%r"
   type(torch_pymodule) :: model
   character(:), allocatable :: errmsg
   character(20) :: chosen
   integer :: rank, ranks, found, stat, word

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call ftn_pytorch_set_threads(1)
   warned = ""
   call ftn_pytorch_on_warning(note_warning)
   do word = 1, command_argument_count()
      call get_command_argument(word, chosen)
      call run(trim(chosen))
   end do
   call MPI_Finalize()
   call finish()

contains

   subroutine run(name)
      character(*), intent(in) :: name

      select case (name)
      case ("whole")
         call remove_all()
         call load()
         call train(1, 8)
         call model%call("report", [torch_in(prefix//"whole")])
      case ("begin")
         call load()
         call model%restore(parts, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "nothing is there on any rank", errmsg)
         call train(1, 3)
         call model%checkpoint(parts, step=3)
         call train(4, 5)
         call model%checkpoint(parts, step=5)
         ! As if the job was killed before the others have written
         if (rank == 1) call execute_command_line("rm "//prefix//"parts_1/checkpoint-000000000005.ckpt")
      case ("end")
         call load()
         call model%restore(parts, found=found)
         call expect(found == 3, "the newest step that all ranks have")
         call expect(steps_done() == 3, "what a rank has of its own")
         call model%call("require_equal")
         call train(4, 8)
         call model%checkpoint(parts, step=8)
         call objects_of_files()
         call model%call("report", [torch_in(prefix//"parts")])
         call model%restore(parts, step=5, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a step that one rank had", errmsg)
         call expect_text(errmsg, "there is no step 5 that all ranks have. Steps of rank 0: 8, 3; rank 1: 8, 3", &
            "what there is")
         call expect(warned == "", "no warning: "//warned)
      case ("more")
         call load()
         call model%restore(parts, found=found)
         call expect(found == 8, "a restart on more ranks")
         call expect(steps_done() == merge(8, 0, rank < 2), "a new rank begins with a counter of its own")
         call model%call("require_equal")
         call expect((rank == 0) .eqv. index(warned, "was written by 2 ranks, and there are 3: rank 2 gets net, &
            &optimizer of rank 0, and begins with buffer, steps, random states as the script made them") > 0, &
            "rank 0 is warned of more ranks: "//warned)
         call train(9, 9)
         call model%call("require_equal")
      case ("fewer")
         call load()
         call model%restore(parts, found=found)
         call expect(found == 8 .and. steps_done() == 8, "a restart on fewer ranks")
         call expect_text(warned, "was written by 2 ranks, and there are 1: buffer, steps, random states of rank 1 &
            &are not used", "the warning about fewer ranks")
      case ("node")
         call one_file_of_a_node()
      case ("damaged")
         call load()
         if (rank == 1) call execute_command_line("printf x >> "//prefix//"parts_1/checkpoint-000000000008.ckpt")
         call MPI_Barrier(MPI_COMM_WORLD)
         call model%restore(parts, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_CORRUPT, "the file of one rank is damaged", errmsg)
         if (rank == 0) call expect_text(errmsg, "rank 1 cannot read its part", "who cannot go on")
         call expect(steps_done() == 0, "nothing was changed")
         call model%load(script("shared.py"), [torch_in("grown", rank == 1)], communicator=MPI_COMM_WORLD)
         call model%restore(parts, fallback=.true., stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "the network of one rank does not fit", errmsg)
         if (rank == 0) call expect_text(errmsg, "rank 1 has restored nothing, but this one has", "who")
         call model%checkpoint(parts, step=20, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "what is shared is not the same on two ranks", errmsg)
         call expect_text(errmsg, "rank 1 differs from rank 0 in net", "where the ranks differ")
         call load()
         call model%restore(parts, fallback=.true., found=found)
         call expect(found == 3 .and. steps_done() == 3, "all ranks fall back")
         call model%call("require_equal")
      end select
   end subroutine run

   subroutine remove_all()
      if (rank == 0) call execute_command_line("rm -rf "//prefix//"*_0* "//prefix//"*_1* "//prefix//"*_2*")
      call MPI_Barrier(MPI_COMM_WORLD)
   end subroutine remove_all

   subroutine load()
      call model%load(script("shared.py"), communicator=MPI_COMM_WORLD)
   end subroutine load

   !> Samples of this rank and of the step
   subroutine train(first, last)
      integer, intent(in) :: first, last

      real(real32) :: x(3, 4), target(1, 4)
      real(real64) :: loss
      integer :: step

      do step = first, last
         x = 0.1*(rank + 1)*step
         target(:, :) = sin(real(step + rank, real32))
         call model%train_step([torch_in(x)], [torch_in(target)], loss)
      end do
   end subroutine train

   function steps_done() result(steps)
      integer :: steps

      call model%call("steps_done", outputs=[torch_out(steps)])
   end function steps_done

   !> Ranks of one machine that keep only random states of their own
   subroutine one_file_of_a_node()
      real(real32) :: x(3, 4), target(1, 4)
      real(real64) :: expected, loss
      logical :: there

      if (rank == 0) call execute_command_line("rm -rf "//prefix//"node_*")
      call MPI_Barrier(MPI_COMM_WORLD)
      call model%load(script("shared_node.py"), communicator=MPI_COMM_WORLD)
      x = 0.1*(rank + 1)
      target = 1
      call model%train_step([torch_in(x)], [torch_in(target)], loss)
      call model%checkpoint(prefix//"node_%r", step=1)
      call MPI_Barrier(MPI_COMM_WORLD)
      inquire (file=prefix//"node_"//achar(iachar("0") + rank)//"/checkpoint-000000000001.ckpt", exist=there)
      call expect(there .eqv. rank == 0, "one rank of the node writes for all")
      call model%train_step([torch_in(x)], [torch_in(target)], expected)
      call model%load(script("shared_node.py"), communicator=MPI_COMM_WORLD)
      call model%restore(prefix//"node_%r", found=found)
      call expect(found == 1, "what the file of the node has")
      call model%train_step([torch_in(x)], [torch_in(target)], loss)
      call expect(loss == expected, "random states of each rank are in the file of the node")
      call expect(warned == "", "no warning: "//warned)
   end subroutine one_file_of_a_node

   subroutine objects_of_files()
      character(40) :: objects

      call model%call("objects_of", [torch_in(prefix//"parts_"//achar(iachar("0") + rank))], [torch_out(objects)])
      if (rank == 0) then
         call expect(objects == "buffer,net,optimizer,rank,steps" .or. objects == "buffer,net,optimizer,steps", &
            "rank 0 writes all: "//objects)
      else
         call expect(objects == "buffer,steps", "another rank writes what is its own: "//objects)
      end if
   end subroutine objects_of_files
end program test_shared_mpi
