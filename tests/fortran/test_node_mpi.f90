! SPDX-License-Identifier: MIT
!> One process loads a script for all ranks of the node: arguments and results, ranks, failures, ends of processes.
!>
!>     mpirun -n 4 test_node_mpi <case>
program test_node_mpi
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use mpi_f08
   use check, only : expect, expect_status, expect_text, finish, is_mapped, script
   use ftn_pytorch
   implicit none

   integer :: rank, ranks, warnings = 0
   character(20) :: chosen

   call get_command_argument(1, chosen)
   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   select case (chosen)
   case ("calls")
      call arguments_and_results()
   case ("training")
      call training()
   case ("same")
      call same_as_ranks()
   case ("models")
      call saved_models()
   case ("refused")
      call refused()
   case ("ended")
      call ended_workers()
   case ("alone")
      call alone()
   case ("computes")
      call computes()
   end select
   if (chosen /= "same") call expect(.not. is_mapped("libpython"), "no Python is in the process of a rank")
   if (chosen /= "same" .and. chosen /= "models") call expect(.not. is_mapped("libtorch"), "no torch either")
   call MPI_Finalize()
   call finish()

contains

   !> What reaches the script, and what comes back
   subroutine arguments_and_results()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      type(torch_tensor) :: tensor, input
      type(torch_tensor_wrap) :: wrap
      character(:), allocatable :: errmsg
      integer(int32) :: numbers(4)
      integer :: i, stat
      real(real32), target :: x(3, 6), y(1, 6), by_list(1, 6), sums(3, 6), directions(3, 6), copied(3, 6)
      character(20) :: value
      real(real32) :: total
      real(real32), pointer :: seen(:, :)
      complex(real64) :: z
      logical :: flag
      character(:), allocatable :: name

      call model%load(script("node.py"), config=[torch_in("lr", 5e-3)], communicator=MPI_COMM_WORLD, per="node")
      call expect(model%backend() == "script", "what runs it")
      call expect(model%has("kinds") .and. .not. model%has("nothing"), "functions")
      call model%call("places", outputs=[torch_out(numbers)])
      call expect(all(numbers == [rank, ranks, ranks, 1]), "rank and size, in a process that was forked")

      x = reshape([(real(i)/10 + rank, i=1, 18)], [3, 6])
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(abs(y) < 100) .and. y(1, 1) /= y(1, 2), "a prediction")
      call wrap%create()
      call wrap%add_array(x)
      call model%forward(wrap, tensor)
      call tensor%to_array(seen)
      call expect(all(seen == y), "the same by a list of arguments")
      call input%from_array(x)
      call model%forward([input%arg()], [torch_out(by_list)])
      call expect(all(by_list == y), "the same from a tensor")
      call model%forward([torch_in(x(:, 6:1:-1))], [torch_out(by_list)])
      call expect(all(abs(by_list - y(:, 6:1:-1)) < 1e-5), "a section that runs backwards")
      call model%forward([torch_copy(2*x/2)], [torch_out(by_list(:, ::1))])
      call expect(all(by_list == y), "a copy")

      call model%call("kinds", [torch_in("x", x), torch_in("n", 7), torch_in("scale", 0.5d0), &
         torch_in("flag", .true.), torch_in("name", "closure "), torch_in("z", (1d0, 2d0))], results)
      call expect(results%count() == 7 .and. results%name(2) == "name", "results by name")
      call results%scalar("name", name)
      call results%scalar("flag", flag)
      call results%scalar("z", z)
      call results%copy_to("sum", total)
      call expect(name == "CLOSURE" .and. .not. flag .and. z == (-4d0, 2d0), "values")
      call expect(abs(total - (sum(x)/2 + 7)) < 1e-3, "a sum")
      call results%to_array("x", seen)
      call expect(all(seen == x(:, 6:1:-1)), "memory of a result")
      call results%copy_to("half", by_list, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a result of another shape")
      directions = 1 + x/10
      by_list = y
      call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(directions)], [torch_out(y)])
      call model%adjoint("ftn_pytorch_forward", [torch_in(x)], [torch_in(by_list)], [torch_out(sums)])
      call expect(abs(sum(y*by_list) - sum(sums*directions)) < 1e-4*sum(abs(y*by_list)), "tangent and adjoint")
      call model%call("add", [torch_in(x), torch_in(x)], [torch_out(sums)])
      call expect(all(sums == 2*x), "an output that the script writes itself")
      call model%call("environment", [torch_in("OMPI_COMM_WORLD_RANK")], results)
      call results%scalar(1, name)
      call get_environment_variable("OMPI_COMM_WORLD_RANK", value)
      call expect(name == value .or. name == "none", "the environment of the rank")
      call model%call("environment", [torch_in("SET_BY_THE_SCRIPT")], results)
      call results%scalar(1, name)
      call expect(name == "kept", "what the script has set while it was loaded")
      y = -1
      call model%call("in_place", [torch_out(x)])
      call expect(abs(x(1, 1) - (1.1 + rank)) < 1e-5, "an input that the script changes")
      call model%call("in_place", [torch_in(x)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "an input that it must not change", errmsg)
      do i = 1, 3
         sums = i
         call model%call("first_copy", [torch_copy(sums)], [torch_out(copied)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "a copy that the script changes", errmsg)
         call expect(all(sums == i), "what was copied")
         call expect(all(copied == 2), "a copy that the script keeps")
      end do
      call model%call("fails", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "an exception", errmsg, "ValueError: no good: (6, 3)")
      call expect_text(errmsg, "node.py", "where it was raised")
      call expect(all(y == -1), "outputs of a call that failed")
      call ftn_pytorch_on_warning(count_warning)
      call model%call("keeps", [torch_in(x)])
      call expect(warnings == 1, "a warning of the worker")
      call ftn_pytorch_on_warning()
      call model%call("nothing", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a function that is not there", errmsg)
      call model%call("joins_group", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a process group", errmsg, "is no rank of MPI")
      call model%call("texts_of_ranks", outputs=[torch_out(total)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "texts and networks between ranks", errmsg)
      call model%free()
   end subroutine arguments_and_results

   subroutine count_warning(text)
      character(*), intent(in) :: text

      if (index(text, "keeps of node kept input 1") == 1) warnings = warnings + 1
      if (index(text, "a warning of a load that fails") > 0) warnings = warnings + 1
   end subroutine count_warning

   !> One network of all ranks, its checkpoints, and random numbers
   subroutine training()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      character(:), allocatable :: errmsg
      integer :: i, stat
      logical :: done
      real(real32) :: x(3, 5), target(1, 5), loss, y(1, 5), again(1, 5)
      real(real64) :: numbers(2), of_first(2)

      call ftn_pytorch_set_threads(1)
      call load_and_train(record=.false., y=y)
      call load_and_train(record=.true., y=again)
      call expect(all(y == again), "recorded steps")
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node")
      call model%call("first_random_numbers", outputs=[torch_out(numbers)])
      of_first = numbers
      call MPI_Bcast(of_first, 2, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
      call expect(all(numbers == of_first), "all workers begin with the random numbers of torch and of Python")
      call model%call("threads", results=results)
      call results%scalar(1, i)
      call expect(i == 1, "threads that the program has asked for")
      do i = 1, 3
         x = i + rank/10.0
         target(1, :) = sum(x, 1)
         done = model%train([torch_in(x)], [torch_in(target)], loss, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "a step", errmsg)
      end do
      call expect(done, "the script says when it is done")
      call model%checkpoint("test_node_mpi_rank%r", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a checkpoint", errmsg)
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%reload()
      call model%forward([torch_in(x)], [torch_out(again)])
      call expect(any(y /= again), "reload begins anew")
      call model%restore("test_node_mpi_rank%r", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "restoring", errmsg)
      call model%forward([torch_in(x)], [torch_out(again)])
      call expect(all(y == again), "a network that was restored")
      call model%free()
   end subroutine training

   !> Predictions after ten steps with samples of all ranks, the same on all of them
   subroutine load_and_train(record, y, per)
      logical, intent(in) :: record
      real(real32), intent(out), target :: y(1, 5)
      character(*), intent(in), optional :: per

      type(torch_pymodule) :: model
      integer :: i, j
      logical :: done
      real(real32) :: x(3, 5), target(1, 5), loss, of_first(1, 5)

      if (present(per)) call model%load(script("node.py"), communicator=MPI_COMM_WORLD, record=record, per=per)
      if (.not. present(per)) call model%load(script("node.py"), communicator=MPI_COMM_WORLD, record=record, per="node")
      do i = 1, 10
         x = reshape([(sin(real(j*i + 7*rank)), j=1, 15)], [3, 5])
         target(1, :) = sum(x, 1)
         done = model%train([torch_in(x)], [torch_in(target)], loss)
      end do
      x = 1
      call model%forward([torch_in(x)], [torch_out(y)])
      of_first = y
      call MPI_Bcast(of_first, size(of_first), MPI_REAL, 0, MPI_COMM_WORLD)
      call expect(all(y == of_first), "one network on all ranks")
      call model%free()
   end subroutine load_and_train

   !> The bits that ranks with a Python of their own have
   subroutine same_as_ranks()
      real(real32) :: of_node(1, 5), of_ranks(1, 5)

      call ftn_pytorch_set_threads(1)
      call load_and_train(record=.false., y=of_node)
      call load_and_train(record=.false., y=of_ranks, per="rank")
      call expect(all(of_node == of_ranks), "the numbers of ranks with Python")
   end subroutine same_as_ranks

   !> Models that run without Python, and those that Python runs
   subroutine saved_models()
      type(torch_module) :: shared, own
      type(torch_pymodule) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: tensor
      character(:), allocatable :: errmsg
      integer :: stat
      real(real32) :: x(1, 4), y(1, 4), theirs(1, 4), loss, total

      x = reshape([1.0, 2.0, 3.0, 4.0], [1, 4]) + rank
      call own%load("polynomial.pt")
      call shared%load("polynomial.pt", communicator=MPI_COMM_WORLD, per="node", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "TorchScript", errmsg)
      call own%forward([torch_in(x)], [torch_out(theirs)])
      call shared%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == theirs), "its numbers in "//shared%backend())
      call tensor%from_array(x)
      call tensor%set_requires_grad(.true.)
      call shared%forward([tensor%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a tensor with a graph", errmsg)
      call expect_text(errmsg, "requires gradients, which do not reach the process", "the text about that")
      call shared%create_optimizer_sgd(1e-3)
      call shared%train([torch_in(x)], [torch_in(y)], loss)
      call expect(loss == 0, "a step")
      call shared%load("polynomial.pt", communicator=MPI_COMM_WORLD, per="node", backend="python")
      call shared%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == theirs) .and. shared%backend() == "torchscript", "its numbers in Python")
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node")
      call scope%begin()
      call scope%no_grad()
      call model%call("gradients_are_on", outputs=[torch_out(total)])
      call expect(total == 0, "gradients are off where the rank has switched them off")
   end subroutine saved_models

   !> What cannot be loaded for others, and what a module of another process cannot do
   subroutine refused()
      type(torch_pymodule) :: model
      type(torch_module) :: target
      type(torch_optimizer) :: optimizer
      type(MPI_Comm) :: pairs, half, both
      character(:), allocatable :: errmsg
      character(6), parameter :: ways(7) = [character(6) :: "thread", "rank", "host", "mpi", "sum", "halo", "other"]
      character(40), parameter :: texts(7) = [character(40) :: "has started threads", &
         "there is no rank while it is loaded", "ftn_pytorch.host is not known here", &
         "cannot import mpi4py.MPI", "ranks can meet in calls of the program", "is no rank of MPI", &
         "RuntimeError: other"]
      integer :: i, stat

      call model%load(script("node.py"), per="node", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no communicator", errmsg, "needs communicator=")
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="core", stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "valid are rank, node", "another word")
      call model%load(script("node.py"), communicator=MPI_COMM_NULL, per="node", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a null communicator", errmsg)
      call expect_text(errmsg, "that of MPI_COMM_NULL or of an inter-communicator", "the text about that")
      call model%load(script("node.py"), communicator=MPI_COMM_NULL, per="gpu", device="cpu", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "the same for a GPU", errmsg)
      call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
      call MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - mod(rank, 2), 7, both)
      call model%load(script("node.py"), communicator=both, per="node", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an inter-communicator", errmsg)
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node", device="cuda", stat=stat, &
         errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "a device", errmsg)
      call ftn_pytorch_on_warning(count_warning)
      do i = 1, size(ways)
         call model%load(script("node_refused.py"), config=[torch_in("way", ways(i))], communicator=MPI_COMM_WORLD, &
            per="node", stat=stat, errmsg=errmsg)
         call expect(stat /= FTN_PYTORCH_OK, ways(i))
         call expect_text(errmsg, trim(texts(i)), "the text about "//ways(i))
      end do
      call ftn_pytorch_on_warning()
      call MPI_Allreduce(MPI_IN_PLACE, warnings, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      call expect(warnings == 1, "a warning of a load that fails, once for the node")
      call model%load(script("node_refused.py"), config=[torch_in("way", "end")], communicator=MPI_COMM_WORLD, &
         per="node", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "a process that ends while it loads", errmsg)
      call model%load(script("node.py"), config=[torch_in("lr", 1d0*rank)], communicator=MPI_COMM_WORLD, per="node", &
         stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "another config on each rank", errmsg)
      call expect_text(errmsg, "load different files, or with different options or config", "the text about that")
      ! two of the ranks load, and these agree
      call MPI_Comm_split(MPI_COMM_WORLD, rank/2, rank, pairs)
      if (rank < 2) then
         call model%load(script("node.py"), communicator=pairs, per="node", stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "two of the ranks", errmsg)
         call target%load("polynomial.pt", backend="python", communicator=pairs, per="node")
         call model%publish(target, stat=stat, errmsg=errmsg)
         call expect_text(errmsg, "its networks cannot be published", "publishing from another process")
         call model%call("calls_procedure", stat=stat, errmsg=errmsg)
         call expect_text(errmsg, "has registered no procedure", "a procedure of the rank")
         call optimizer%create("SGD", model, stat=stat, errmsg=errmsg)
         call expect_text(errmsg, "its objects cannot be used here", "an optimizer in another process")
         call target%free()
      end if
   end subroutine refused

   !> Workers that end, alone and after the process that could make another one
   subroutine ended_workers()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat
      real(real32) :: x(3, 2), before(1, 2), y(1, 2)

      x = 1
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node")
      call model%forward([torch_in(x)], [torch_out(before)])
      y = -1
      if (rank == 1) then
         call model%call("die", [torch_in(9)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a worker that is killed", errmsg)
         call expect_text(errmsg, "the process that works for rank 1 has ended by signal 9, Killed, in die of node", &
            "the text about that")
         call expect(all(y == -1), "outputs of that call")
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a call after that", errmsg)
         call model%reload()
         call model%call("die", [torch_in(11)], stat=stat, errmsg=errmsg)
         call expect_text(errmsg, "by signal 11", "a second worker")
         call model%reload()
      end if
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == before), "another worker, and those of other ranks")
      call MPI_Barrier(MPI_COMM_WORLD)
      if (rank == 0) call model%call("kill_loader")
      call MPI_Barrier(MPI_COMM_WORLD)
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "workers outlive the process that made them", errmsg)
      if (rank == 1) then
         call model%call("die", [torch_in(9)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "another end", errmsg)
         call model%reload(stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "nobody makes another worker", errmsg, "load again")
      end if
      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == before), "another load")
   end subroutine ended_workers

   !> For test_node.py, which ends this process
   subroutine alone()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      integer(int64) :: worker
      integer :: status

      call model%load(script("node.py"), communicator=MPI_COMM_WORLD, per="node")
      call model%call("process", results=results)
      call results%scalar(1, worker)
      print *, worker
      flush (6)
      read (*, *, iostat=status)  ! until this process is ended
      if (status == 0) print *, "nobody has ended it"
   end subroutine alone

   !> For test_node.py, which counts the threads of the worker
   subroutine computes()
      type(torch_module) :: model
      real(real32), allocatable :: x(:, :), y(:, :)
      integer :: status

      allocate (x(1, 400000), y(1, 400000), source=1.0)
      call get_command_argument(2, chosen)
      read (chosen, *) status
      if (status > 0) call ftn_pytorch_set_threads(status)
      call model%load("net.pt", communicator=MPI_COMM_WORLD, per="node", backend="direct")
      call model%forward([torch_in(x)], [torch_out(y)])
      print "(a)", "computed"
      flush (6)
      read (*, *, iostat=status)  ! until that is done
      if (status == 0) print "(a)", "nobody has told that"
   end subroutine computes

end program test_node_mpi
