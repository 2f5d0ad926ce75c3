! SPDX-License-Identifier: MIT
!> Two ranks: names with %r are a rank's own, one name for both is an error of the second writer.
program test_checkpoint_mpi
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use mpi_f08
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   character(*), parameter :: prefix = "test_checkpoint_mpi_"
   integer :: rank, ranks

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call expect(ranks == 2, "this test is for two ranks")
   if (rank == 0) call execute_command_line("rm -rf "//prefix//"*")
   call MPI_Barrier(MPI_COMM_WORLD)
   call names_of_their_own()
   call saved_model()
   call one_folder()
   call one_folder_at_once()
   call one_file()
   call MPI_Finalize()
   call finish()

contains

   !> Another training on each rank
   subroutine train(model, steps)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: steps

      real(real32) :: x(3, 4), target(1, 4)
      real(real64) :: loss
      integer :: step

      x = 0.1*(rank + 1)
      target = rank
      do step = 1, steps
         call model%train_step([torch_in(x)], [torch_in(target)], loss)
      end do
   end subroutine train

   function steps_done(model) result(steps)
      type(torch_pymodule), intent(in) :: model
      integer :: steps

      call model%call("steps_done", outputs=[torch_out(steps)])
   end function steps_done

   function own_name(before, after) result(name)
      character(*), intent(in) :: before, after
      character(:), allocatable :: name

      name = prefix//before//achar(iachar("0") + rank)//after
   end function own_name

   subroutine names_of_their_own()
      type(torch_pymodule) :: model, restored
      integer :: found
      logical :: there

      call model%load(script("checkpoint.py"))
      call train(model, 2 + rank)
      call model%checkpoint(prefix//"own%r", step=10 + rank)
      call model%save(prefix//"own%r.ckpt")
      inquire (file=own_name("own", ".ckpt"), exist=there)
      call expect(there, "the rank is in the name of the file")
      call MPI_Barrier(MPI_COMM_WORLD)

      call restored%load(script("checkpoint.py"))
      call restored%restore(prefix//"own%r", found=found)
      call expect(found == 10 + rank .and. steps_done(restored) == 2 + rank, "a rank restores what it wrote")
      call restored%restore(own_name("own", ""), found=found)
      call expect(found == 10 + rank, "the rank is in the name of the folder")
      call train(restored, 1)
      call restored%restore(prefix//"own%r.ckpt")
      call expect(steps_done(restored) == 2 + rank, "a file as well")
   end subroutine names_of_their_own

   !> On the direct path where there is one
   subroutine saved_model()
      type(torch_module) :: model
      real(real32) :: x(1, 2), y(1, 2), z(1, 2)
      logical :: there

      x = 0.5
      call model%load("polynomial.pt")
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%save(prefix//"model%r.pt")
      inquire (file=own_name("model", ".pt"), exist=there)
      call expect(there, model%backend()//": the rank is in the name of a saved model")
      call model%restore(prefix//"model%r.pt")
      call model%forward([torch_in(x)], [torch_out(z)])
      call expect(all(y == z), model%backend()//": a rank restores what it saved")
   end subroutine saved_model

   subroutine one_folder()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(script("checkpoint.py"))
      if (rank == 0) call model%checkpoint(prefix//"one", step=1)
      call MPI_Barrier(MPI_COMM_WORLD)
      if (rank == 1) then
         call model%checkpoint(prefix//"one", step=2, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_LOCKED, "a folder of two ranks", errmsg, "rank 0 of 2")
         call expect_text(errmsg, "write %r for the rank", "the cure")
      end if
      call MPI_Barrier(MPI_COMM_WORLD)
      if (rank == 0) call model%checkpoint(prefix//"one", step=3)
      call model%free()
   end subroutine one_folder

   !> Whoever comes first, there is one
   subroutine one_folder_at_once()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat, written, refused

      call model%load(script("checkpoint.py"))
      call MPI_Barrier(MPI_COMM_WORLD)
      call model%checkpoint(prefix//"at_once", stat=stat, errmsg=errmsg)
      call expect(stat == FTN_PYTORCH_OK .or. stat == FTN_PYTORCH_ERR_LOCKED, "two ranks at once")
      written = merge(1, 0, stat == FTN_PYTORCH_OK)
      refused = merge(1, 0, stat == FTN_PYTORCH_ERR_LOCKED)
      call MPI_Allreduce(MPI_IN_PLACE, written, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      call MPI_Allreduce(MPI_IN_PLACE, refused, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      call expect(written == 1 .and. refused == 1, "one of two ranks writes, the other one is told")
   end subroutine one_folder_at_once

   !> They need not meet: the file tells who wrote it
   subroutine one_file()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(script("checkpoint.py"))
      if (rank == 0) call model%save(prefix//"file.ckpt")
      call MPI_Barrier(MPI_COMM_WORLD)
      if (rank == 1) then
         call model%save(prefix//"file.ckpt", stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_LOCKED, "a file of two ranks")
         call expect_text(errmsg, "was written by rank 0 of this job", "the owner of the file")
      end if
   end subroutine one_file
end program test_checkpoint_mpi
