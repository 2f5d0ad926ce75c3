! SPDX-License-Identifier: MIT
!> Two ranks without Python: one name for both is an error of the second writer, also where they never meet at a lock.
!>
!>     mpirun -n 2 test_saved_recording_mpi <rank that writes first>
program test_saved_recording_mpi
   use mpi_f08
   use check, only : expect, expect_status, expect_text, finish, is_mapped
   use ftn_pytorch
   implicit none

   character(*), parameter :: prefix = "test_saved_recording_mpi_"
   type(torch_module) :: closure
   character(1) :: word
   integer :: rank, ranks, first, warnings = 0

   call get_command_argument(1, word)
   read (word, *) first
   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call expect(ranks == 2, "this test is for two ranks")
   call closure%load("closure.ftr")
   call names_of_their_own()
   if (rank == first) call one_name()
   call MPI_Barrier(MPI_COMM_WORLD)
   if (rank /= first) call one_name()
   call ranks_of_a_communicator()
   call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call MPI_Finalize()
   call finish()

contains

   subroutine names_of_their_own()
      character(:), allocatable :: errmsg
      integer :: stat, step

      call closure%save(prefix//"%r.ftr", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a file of each rank", errmsg)
      call closure%checkpoint(prefix//"rank%r", step=1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a folder of each rank", errmsg)
      call closure%restore(prefix//"rank%r", found=step)
      call expect(step == 1, "each rank has its step")
   end subroutine names_of_their_own

   !> The other way round than in the job
   subroutine ranks_of_a_communicator()
      type(MPI_Comm) :: turned
      integer :: step, number

      call MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, turned)
      call MPI_Comm_rank(turned, number)
      call expect(number == 1 - rank, "the communicator has another order")
      call closure%load("closure.ftr", communicator=turned)
      call closure%checkpoint(prefix//"turned%r", step=1 + rank)
      call closure%restore(prefix//"turned%r", found=step)
      call expect(step == 1 + rank, "the checkpoint of this rank")
      call MPI_Barrier(MPI_COMM_WORLD)
      call closure%free()
      call closure%load("closure.ftr")
      call ftn_pytorch_on_warning(count_warning)
      call closure%restore(prefix//"turned"//achar(iachar("0") + number), found=step)
      call expect(step == 1 + rank, "is in the folder of its rank in the communicator")
      call expect(warnings == 1, "the rank of the job is told that another one has written it")
      call closure%restore(prefix//"rank%r")
      call expect(warnings == 1, "and of its own file nothing")
      call closure%load("closure.ftr", communicator=turned, per="node")
      call closure%checkpoint(prefix//"node%r", step=3 + rank)
      call closure%restore(prefix//"node%r")
      call closure%load("closure.ftr", communicator=turned)
      call closure%restore(prefix//"node%r", found=step)
      call expect(warnings == 1, "a worker writes under the rank in the communicator")
      call expect(step == 3 + rank, "so it is where another process runs the file")
      call closure%free()
      call MPI_Comm_free(turned)
   end subroutine ranks_of_a_communicator

   subroutine count_warning(text)
      character(*), intent(in) :: text

      warnings = warnings + merge(1, 0, index(text, "was written by rank") > 0)
   end subroutine count_warning

   !> What a former job has left there is replaced, what the other rank of this one has written is not
   subroutine one_name()
      character(:), allocatable :: errmsg
      integer :: stat

      call closure%save(prefix//"one.ftr", stat=stat, errmsg=errmsg)
      call expect_one_writer(stat, errmsg, "one.ftr")
      call closure%save(prefix//"one.ftr", stat=stat, errmsg=errmsg)
      call expect_one_writer(stat, errmsg, "one.ftr")
      call closure%checkpoint(prefix//"one", step=1, stat=stat, errmsg=errmsg)
      call expect_one_writer(stat, errmsg, "one/checkpoint-000000000001.ckpt")
      call closure%free() ! and with it the lock of the folder
   end subroutine one_name

   subroutine expect_one_writer(stat, errmsg, name)
      integer, intent(in) :: stat
      character(:), allocatable, intent(in) :: errmsg
      character(*), intent(in) :: name

      if (rank == first) then
         call expect_status(stat, FTN_PYTORCH_OK, "the first rank writes "//name, errmsg)
      else
         call expect_status(stat, FTN_PYTORCH_ERR_LOCKED, "the second rank is told of "//name, errmsg, &
            prefix//name//" was written by rank "//word//" of this job")
      end if
   end subroutine expect_one_writer

end program test_saved_recording_mpi
