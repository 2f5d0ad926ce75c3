! SPDX-License-Identifier: MIT
!> Four ranks train one network: handles of communicators, gradients over ranks, what goes wrong.
!>
!>     mpirun -n 4 test_ranks_mpi <case>...
program test_ranks_mpi
   use, intrinsic :: iso_fortran_env, only : real64
   use mpi_f08
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use handles_of_mpi, only : load_with_integer, load_with_null
   implicit none

   integer :: rank, ranks, word
   character(20) :: chosen

   call get_command_argument(1, chosen)
   if (chosen == "uninitialised") call before_mpi()
   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call expect(ranks == merge(2, 4, chosen == "beside"), "this test is for four ranks, or two beside")
   call ftn_pytorch_set_threads(1)
   do word = 1, command_argument_count()
      call get_command_argument(word, chosen)
      call run(trim(chosen))
   end do
   call MPI_Finalize()
   if (chosen == "uninitialised") call after_mpi()
   call finish()

contains

   subroutine run(name)
      character(*), intent(in) :: name

      select case (name)
      case ("handles")
         call handles()
      case ("several")
         call one_after_the_other()
         call several_communicators()
      case ("halves")
         call two_halves()
      case ("freed")
         call freed_communicator()
      case ("training")
         call training()
      case ("beside")
         call beside_the_program()
      case ("missing")
         call missing_rank()
      case ("failing")
         call failing_rank()
      case ("saved")
         call saved_recording()
      end select
   end subroutine run

   subroutine expect_numbers(model, function_name, expected_rank, expected_size, what)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: function_name, what
      integer, intent(in) :: expected_rank, expected_size

      integer :: numbers(2)

      call model%call(function_name, outputs=[torch_out(numbers)])
      call expect(all(numbers == [expected_rank, expected_size]), what)
   end subroutine expect_numbers

   !> Every kind of handle, and what no communicator means
   subroutine handles()
      type(torch_pymodule) :: model
      type(torch_module) :: saved
      type(MPI_Comm) :: reversed
      character(:), allocatable :: errmsg
      integer :: stat

      call load_with_integer(model, script("ranks.py"))
      call expect_numbers(model, "numbers_at_load", rank, ranks, "an integer handle")
      call model%free()
      call model%load(script("ranks.py"), communicator=MPI_COMM_WORLD)
      call expect_numbers(model, "numbers_at_load", rank, ranks, "a handle of mpi_f08")
      call expect_numbers(model, "numbers_now", rank, ranks, "after load")
      call model%free()
      call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, reversed)
      ! Not collective: the even ranks are enough
      if (mod(rank, 2) == 0) call model%load(script("ranks.py"), communicator=reversed)
      if (mod(rank, 2) == 0) call expect_numbers(model, "numbers_now", 3 - rank, ranks, "another order of ranks")
      call model%free()
      call model%load(script("ranks.py"))
      call expect_numbers(model, "numbers_now", rank, ranks, "what the launcher tells")

      call load_with_null(model, script("ranks.py"), stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a null communicator", errmsg, "MPI_COMM_NULL")
      call saved%load("polynomial.pt", communicator=MPI_COMM_WORLD, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a saved model", errmsg, "leave out communicator=")
      call saved%load("polynomial.pt", communicator=MPI_COMM_WORLD, backend="python", stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "leave out communicator=", "the text about a saved model in Python")
      call MPI_Comm_free(reversed)
   end subroutine handles

   !> Two modules of this process have communicators of their own
   subroutine several_communicators()
      type(torch_pymodule) :: all_ranks, alike, lone, neither
      type(MPI_Comm) :: copied
      character(:), allocatable :: errmsg
      integer :: stat
      real(real64) :: difference

      call all_ranks%load(script("ranks.py"), communicator=MPI_COMM_WORLD)
      call lone%load(script("ranks.py"), communicator=MPI_COMM_SELF)
      call expect_numbers(all_ranks, "numbers_at_load", rank, ranks, "at the load of the first")
      call expect_numbers(lone, "numbers_at_load", 0, 1, "at the load of the second")
      call expect_numbers(all_ranks, "numbers_now", rank, ranks, "in a call of the first")
      call expect_numbers(lone, "numbers_now", 0, 1, "in a call of the second")
      call neither%load(script("ranks.py"), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "in one without any", errmsg, "have 2 communicators")
      call all_ranks%call("train_without_samples", outputs=[torch_out(difference)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "averages over all ranks", errmsg)
      call lone%call("train_without_samples", outputs=[torch_out(difference)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "averages over one", errmsg)
      call all_ranks%call("average_of_all")
      call lone%call("average_of_all", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "ranks that a network does not have", errmsg, "of its own")
      call lone%checkpoint("test_ranks_mpi_lone%r_"//achar(iachar("0") + rank), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a module has its own rank in %r", errmsg)
      call lone%free()
      call expect_numbers(all_ranks, "numbers_now", rank, ranks, "when one of them is gone")
      call all_ranks%call("join")
      call MPI_Comm_dup(MPI_COMM_WORLD, copied)
      call alike%load(script("ranks.py"), communicator=copied)
      call alike%call("train_without_samples", outputs=[torch_out(difference)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "another communicator of the same ranks", errmsg)
      call alike%call("average_of_all", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a network of both", errmsg)
      call alike%free()
      call MPI_Comm_free(copied)
      call lone%load(script("ranks.py"), communicator=MPI_COMM_SELF)
      call all_ranks%free()
      call lone%call("join", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a second group", errmsg, "has a process group already")
   end subroutine several_communicators

   !> A communicator is freed after its module, and MPI gives its handle to one of other ranks
   subroutine one_after_the_other()
      type(torch_pymodule) :: model
      type(MPI_Comm) :: own
      integer :: first, size, way, before
      real(real64) :: x(1), y(3)

      x = rank
      do way = 1, 2
         ! all ranks, then those of a half
         size = merge(ranks, 2, way == 1)
         first = size*(rank/size)
         call MPI_Comm_split(MPI_COMM_WORLD, first, rank, own)
         if (way == 2) call expect(own%MPI_VAL == before, "the handle comes back")
         call model%load(script("ranks_halo.py"), communicator=own)
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(nint(y(1)) == first + modulo(rank - first - 1, size), "the neighbour to the left")
         call expect(nint(y(2)) == first + modulo(rank - first + 1, size), "the neighbour to the right")
         call expect(abs(y(3) - (first + (size - 1)/2d0)) < 1d-12, "the mean of the ranks")
         call model%free()
         before = own%MPI_VAL
         call MPI_Comm_free(own)
      end do
   end subroutine one_after_the_other

   !> One network on the even and one on the odd ranks
   subroutine two_halves()
      type(torch_pymodule) :: model
      type(MPI_Comm) :: half
      real(real64) :: x(3, 5), loss, weight, weights(0:3)
      integer :: step

      call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
      call model%load(script("ranks.py"), communicator=half)
      call expect_numbers(model, "numbers_now", rank/2, 2, "the ranks of a half")
      do step = 1, 5
         x = 0.1_real64*(rank + 1)
         call model%train_step([torch_in(x)], [torch_in(x)], loss)
      end do
      call model%call("require_equal")
      call model%call("weight", outputs=[torch_out(weight)])
      call MPI_Allgather(weight, 1, MPI_REAL8, weights, 1, MPI_REAL8, MPI_COMM_WORLD)
      call expect(weights(0) == weights(2) .and. weights(1) == weights(3), "a half has one network")
      call expect(abs(weights(0) - weights(1)) > 1e-6, "the halves have two networks")
   end subroutine two_halves

   !> MPI gives the handle of a communicator that was freed to the next one, which is of other ranks
   subroutine freed_communicator()
      type(torch_pymodule) :: model
      type(MPI_Comm) :: half
      character(:), allocatable :: errmsg
      integer :: stat

      call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
      call model%load(script("ranks.py"), communicator=half)
      call model%call("join")
      call model%free()
      call MPI_Comm_free(half)
      call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
      call model%load(script("ranks.py"), communicator=half)
      call model%call("join", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "the same ranks again", errmsg)
      call model%free()
      call MPI_Comm_free(half)
      call MPI_Comm_split(MPI_COMM_WORLD, rank/2, rank, half)
      call model%load(script("ranks.py"), communicator=half)
      call model%call("join", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a group of other ranks", errmsg)
      call expect_text(errmsg, "has a process group already, of other ranks", "the text about it")
      call model%free()
      call MPI_Comm_free(half)
   end subroutine freed_communicator

   !> Ranks with 0, 5, 10 and 15 samples are one rank with 30
   subroutine training()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      real(real64) :: all_x(3, 30), x(3, 5*rank), gradients(4), all_gradients(4), loss, difference
      integer :: first, step, stat

      call model%load(script("ranks.py"), communicator=MPI_COMM_WORLD)
      call random_init(repeatable=.true., image_distinct=.false.)
      first = 5*rank*(rank - 1)/2
      do step = 1, 20
         call random_number(all_x)
         x = all_x(:, first + 1:first + 5*rank)
         call model%train_step([torch_in(x)], [torch_in(x)], loss)
         call model%call("train_alone", [torch_in(all_x)])
      end do
      call model%call("difference_from_alone", outputs=[torch_out(difference)])
      call expect(difference < 1e-12, "unequal samples are weighted")
      call model%call("require_equal", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "the ranks have one network", errmsg)
      call model%call("train_without_samples", outputs=[torch_out(difference)])
      call expect(difference == 0, "no rank has samples")

      call model%call("spoil", [torch_in(merge(1d-9, 0d0, rank == 2))])
      call model%call("require_equal", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "one rank has another bias", errmsg, "2.bias")
      call expect_text(errmsg, "rank 2 differs", "the rank")

      x(:, :) = rank
      call model%call("in_parallel", [torch_in(all_x(:, 5*rank + 1:5*rank + 5))], [torch_out(gradients)])
      call MPI_Allreduce(gradients, all_gradients, 4, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD)
      call expect(all(abs(4*gradients - all_gradients) < 1e-12), "DistributedDataParallel")
   end subroutine training

   !> Steps in a thread of the script, while the program exchanges on the same communicator
   subroutine beside_the_program()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      real(real64) :: x(3, 5), loss, found(2), alike(2)
      type(MPI_Request) :: request
      integer :: stat, step, told

      x = 0.1_real64*(rank + 1)
      call model%load(script("ranks_beside.py"), config=[torch_in("joins", .false.)], communicator=MPI_COMM_WORLD)
      call model%train_step([torch_in(x)], [torch_in(x)], loss)
      call model%call("finish", outputs=[torch_out(found)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a thread would call MPI", errmsg)
      call expect_text(errmsg, "init_process_group() in ftn_pytorch_setup", "what to do about that")
      call model%free()

      call model%load(script("ranks_beside.py"), communicator=MPI_COMM_WORLD)
      do step = 1, 50
         call model%train_step([torch_in(x)], [torch_in(x)], loss)
         told = merge(step, 0, rank == 0)
         call MPI_Ibcast(told, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, request)
         call MPI_Wait(request, MPI_STATUS_IGNORE)
         call expect(told == step, "what the program sends comes to the program")
      end do
      call model%call("finish", outputs=[torch_out(found)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "the steps of threads meet", errmsg)
      call expect(nint(found(1)) == 50, "all samples are learnt")
      alike = found
      call MPI_Bcast(alike, 2, MPI_REAL8, 0, MPI_COMM_WORLD)
      call expect(all(alike == found), "all ranks predict with one network")
   end subroutine beside_the_program

   !> Nobody waits for ever for a rank that does not come
   subroutine missing_rank()
      type(torch_pymodule) :: model
      type(MPI_Comm) :: own
      character(:), allocatable :: errmsg
      integer :: stat

      call MPI_Comm_dup(MPI_COMM_WORLD, own)
      call model%load(script("ranks.py"), config=[torch_in("limit", 2d0)], communicator=own)
      if (rank /= 0) then
         call model%call("join", stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "rank 0 does not come", errmsg)
         call expect_text(errmsg, "has waited 2 s in init_process_group", "what it waited for")
         call model%call("join", stat=stat, errmsg=errmsg)
         call expect_text(errmsg, "cannot be done any more", "what the communicator is now")
      end if
      call MPI_Barrier(MPI_COMM_WORLD)
   end subroutine missing_rank

   !> One rank raises an exception; the others do not wait for ever, either
   subroutine failing_rank()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      logical :: fails
      integer :: stat

      fails = rank == 1
      call model%load(script("ranks.py"), config=[torch_in("limit", 3d0)], communicator=MPI_COMM_WORLD)
      call model%call("join")
      call model%call("fail_if", [torch_in(fails)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "one rank fails", errmsg)
      if (fails) then
         call expect_text(errmsg, "this rank fails", "the reason on that rank")
      else
         call expect_text(errmsg, "gloo", "the reason on the others")
      end if
      call MPI_Barrier(MPI_COMM_WORLD)
   end subroutine failing_rank

   !> A recording that averages goes on in a file, in this process without Python, with the same bits
   subroutine saved_recording()
      type(torch_pymodule) :: model
      type(torch_module) :: saved, by_python
      character(:), allocatable :: errmsg, file
      real(real64) :: x(3, 5), loss, again
      integer :: step, stat

      file = "test_ranks_mpi_saved"//achar(iachar("0") + rank)//".ftr"
      call random_init(repeatable=.true., image_distinct=.false.)
      call model%load(script("ranks_recorded.py"), communicator=MPI_COMM_WORLD)
      do step = 1, 20
         call random_number(x)
         x = x + rank
         call model%train_step([torch_in(x)], [torch_in(x)], loss)
      end do
      call model%save(file)
      call saved%load(file, communicator=MPI_COMM_NULL, backend="direct", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a null communicator", errmsg, "that of MPI_COMM_NULL")
      call saved%load(file, communicator=MPI_COMM_WORLD, backend="direct")
      call by_python%load(file, communicator=MPI_COMM_WORLD, backend="python")
      do step = 1, 20
         call random_number(x)
         x = x + rank
         call model%train_step([torch_in(x)], [torch_in(x)], loss)
         call saved%train_step([torch_in(x)], [torch_in(x)], again)
         call expect(again == loss, "without Python the losses are the same, bit for bit")
         call by_python%train_step([torch_in(x)], [torch_in(x)], again)
         call expect(again == loss, "from the file in Python, too")
      end do
      ! Rank 1 passes over an error before the average
      if (rank == 1) then
         call saved%train_step([torch_in(x(:2, :))], [torch_in(x)], again, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "another shape", errmsg)
      end if
      call saved%train_step([torch_in(x)], [torch_in(x)], again, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "the ranks are apart", errmsg, "rank 1 is 1 ahead of rank 0")
      call saved%free()
      call saved%load(file, backend="direct")
      call saved%train_step([torch_in(x)], [torch_in(x)], again, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no communicator", errmsg)
      call expect_text(errmsg, "give the communicator of the ranks to load", "what to do")
   end subroutine saved_recording

   subroutine before_mpi()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(script("ranks.py"), communicator=MPI_COMM_WORLD, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "before MPI_Init", errmsg, "MPI_Init has not been called")
   end subroutine before_mpi

   subroutine after_mpi()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(script("ranks.py"), communicator=MPI_COMM_WORLD, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "after MPI_Finalize", errmsg, "MPI_Finalize has been called")
   end subroutine after_mpi
end program test_ranks_mpi
