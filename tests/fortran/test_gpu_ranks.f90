! SPDX-License-Identifier: MIT
!> One process computes for all ranks that use a GPU: which calls are made as one, what is refused, ends of processes.
!>
!>     test_gpu_ranks <case> <device>      device "cpu" does the same without a GPU
program test_gpu_ranks
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, is_mapped, script
   use ftn_pytorch
   use played_ranks, only : ranks_begin, ranks_die, ranks_failed, ranks_wait, require_device
   implicit none

   integer, parameter :: ranks = 4, world = 0
   integer :: rank
   character(20) :: chosen, device

   call get_command_argument(1, chosen)
   call get_command_argument(2, device)
   call require_device(device)
   rank = ranks_begin(ranks)
   select case (chosen)
   case ("calls")
      call calls(record=.false.)
   case ("recorded")
      call calls(record=.true.)
   case ("joined")
      call joined_calls()
   case ("apart")
      call calls_apart()
   case ("failing")
      call failing_calls()
   case ("refused")
      call refused()
   case ("models")
      call saved_models()
   case ("restored")
      call restored()
   case ("ended")
      call ended()
   end select
   if (chosen /= "models" .and. .not. (chosen == "restored" .and. rank == 0)) then
      call expect(.not. is_mapped("libpython"), "no Python is in the process of a rank")
      call expect(.not. is_mapped("libtorch"), "no torch either")
   end if
   if (rank == 0) call expect(ranks_failed() == merge(1, 0, chosen == "ended"), "the other ranks")
   call finish()

contains

   subroutine load(model, record)
      type(torch_pymodule), intent(inout) :: model
      logical, intent(in), optional :: record

      call model%load(script("gpu_ranks.py"), communicator=world, per="gpu", device=trim(device), record=record)
   end subroutine load

   !> Let the ranks begin together, and the owner wait for all of them
   subroutine together(model)
      type(torch_pymodule), intent(in) :: model

      call ranks_wait()
      if (rank == 0) call model%call("wait", [torch_in(0.3)])
      call ranks_wait()
   end subroutine together

   !> Predictions are those of the rank itself, again and again and with other shapes
   subroutine calls(record)
      logical, intent(in) :: record
      type(torch_pymodule) :: model
      type(torch_results) :: results
      character(:), allocatable :: where
      integer :: i, j, n, number
      real(real32) :: x(3, 8), y(1, 8), expected(8), hidden(8), w(8, 3), v(8), b

      call load(model, record)
      call expect(model%backend() == "script", "what is loaded")
      call expect(model%has("joined") .and. .not. model%has("nothing"), "its functions")
      call model%call("place", results=results)
      call results%scalar("rank", number)
      call expect(number == 0, "the script is alone")
      call results%scalar("size", number)
      call expect(number == 1, "among one")
      call results%scalar("device", where)
      call expect(where == merge("cuda:0", "cpu   ", device /= "cpu"), "where it computes")
      do concurrent(i=1:8, j=1:3)
         w(i, j) = (-1 + 2*(3*(i - 1) + j - 1)/23.0)/4
      end do
      v = [((-1 + 2*(i - 1)/7.0)*3/4, i=1, 8)]
      b = -1.0  ! of one number, linspace gives its begin: -1*4/4
      do i = 1, 24
         n = merge(8, 3 + rank, i < 16)
         x = reshape([(real(j)/10 + rank - i, j=1, 24)], [3, 8])
         y = -1
         call model%forward([torch_in(x(:, :n))], [torch_out(y(:, :n))])
         do j = 1, n
            hidden = tanh(matmul(w, x(:, j)) + [((-1 + 2*(number - 1)/7.0)*2/4, number=1, 8)])
            expected(j) = dot_product(v, hidden) + b
         end do
         call expect(all(abs(y(1, :n) - expected(:n)) < 1e-4), "a prediction")
         call expect(all(y(1, n + 1:) == -1), "what is no output")
      end do
   end subroutine calls

   !> Calls of all ranks become one, with other rows on each, and later without a copy
   subroutine joined_calls()
      type(torch_pymodule) :: model, same
      integer :: i, n
      integer(int32) :: seen(3)
      real(real64) :: x(3, 8), y(3, 8), sums(1, 8), z(4, 2, 3), w(4, 2, 3)

      call load(model)
      n = 2 + rank
      call together(model)
      do i = 1, 7
         x = i + rank
         call model%call("joined", [torch_in(x(:, :n)), torch_in("scale", 0.5d0*i), torch_in("name", "four")], &
            [torch_out(y(:, :n)), torch_out(sums(:, :n))])
         call expect(all(y(:, :n) == 2*i*x(:, :n)) .and. all(sums(:, :n) == 3*(i + rank)), "results of the rank")
      end do
      call ranks_wait()
      call model%call("largest", outputs=[torch_out(seen)])
      call expect(seen(1) == sum([2, 3, 4, 5]), "rows of all ranks in one call")
      ! the first, second and fourth are checked with the rows of two ranks alone
      call expect(seen(2) == 7 + 3*2, "a call of the script for all ranks")
      call expect(seen(3) == 1 .or. device /= "cpu", "arrays stay where they are")
      ! other rows, and other numbers that are no arrays
      call together(model)
      call model%call("joined", [torch_in(x), torch_in("scale", 1d0*rank), torch_in("name", "a")], &
         [torch_out(y), torch_out(sums)])
      call expect(all(y == rank*x), "scalars of each rank")
      call ranks_wait()
      call model%call("largest", outputs=[torch_out(seen)])
      call expect(seen(2) == 13 + 4, "four calls, because a scalar is another one")
      call together(model)
      y = rank
      ! a parameter out is for arrays that are where the script computes
      if (device == "cpu") call model%call("adds", [torch_in(x)], [torch_out(y)])
      if (device == "cpu") call expect(all(y == x + rank), "an output that the script adds to")

      call same%load(script("gpu_ranks.py"), communicator=world, per="gpu", device=trim(device), layout="same")
      call together(same)
      do i = 1, 3
         z = i*rank
         call same%call("columns", [torch_in(z)], [torch_out(w)])
         call expect(all(w == 2*z), "axes in the order of Fortran")
      end do
      call ranks_wait()
      call same%call("largest", outputs=[torch_out(seen)])
      call expect(seen(1) == 3*ranks, "their last one is that of the ranks")
   end subroutine joined_calls

   !> Calls that are made for each rank
   subroutine calls_apart()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      type(torch_tensor) :: tensor, input
      type(torch_tensor_wrap) :: wrap
      character(:), allocatable :: errmsg
      integer :: i, stat
      real(real32) :: x(3, 4), y(1, 4), z(3, 4), by_list(1, 4), total
      real(real32), pointer :: seen(:, :)

      call load(model)
      x = reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0], [3, 4]) + rank
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%call("statistics", [torch_in(x), torch_in("n", rank)], results)
      call results%copy_to("sum", total)
      call expect(total == sum(x) + rank, "a number as result")
      call results%to_array("x", seen)
      call expect(all(seen == 2*x), "an array as result")
      call wrap%create()
      call wrap%add_array(x)
      call model%forward(wrap, tensor)
      call tensor%to_array(seen)
      call expect(all(abs(seen - y) < 1e-5), "a list of arguments")
      call input%from_array(x)
      call model%forward([input%arg()], [torch_out(by_list)])
      call expect(all(abs(by_list - y) < 1e-5), "a tensor")
      call model%forward([torch_copy(2*x/2)], [torch_out(by_list)])
      call expect(all(abs(by_list - y) < 1e-5), "a copy")
      do i = 1, 5
         ! those of all ranks in one call, in the end in places that they share
         x = i
         call together(model)
         call model%call("first_copy", [torch_copy(x)], [torch_out(z)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "a copy that the script changes", errmsg)
         call expect(all(x == i) .and. all(z == 2), "what was copied, and a copy that the script keeps")
      end do
      x = 1
      call model%call("in_place", [torch_out(x)])
      call expect(x(1, 1) == 2, "an input that the script changes")
      call model%call("in_place", [torch_in(x)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "an input that it must not change", errmsg)
      call model%reload()
      call model%forward([torch_in(x)], [torch_out(by_list)])
      call expect(all(by_list /= y), "after a reload")
   end subroutine calls_apart

   !> One script for all: its errors are told to all
   subroutine failing_calls()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: i, stat
      real(real64) :: x(3, 2), y(3, 2)

      call load(model)
      x = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 7d0], [3, 2])*(rank + 1)
      y = -1
      call together(model)
      do i = 1, 2
         call model%call("fails", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "an exception", errmsg, "ValueError: no good: 3")
         call expect_text(errmsg, "made this call for 4 ranks at once", "how it was called")
      end do
      call together(model)
      do i = 1, 3
         call model%call("mixes", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "results that depend on rows of other ranks", errmsg)
         call expect_text(errmsg, "output 1 of mixes of gpu_ranks depends on the rows of other ranks", "the text")
         call expect_text(errmsg, "share the GPU by MPS", "the advice")
      end do
      call model%call("needs_one", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "what needs the rows of several ranks", errmsg)
      call expect_text(errmsg, "and not with those of one", "the text about that")
      call expect(all(y == -1), "outputs of calls that failed")
      call model%call("doubles", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a call after that", errmsg)
      call model%call("nothing", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a function that is not there", errmsg)
      call model%forward([torch_in(x)], [torch_out(y(:2, :))], stat=stat, errmsg=errmsg)
      call expect(stat /= FTN_PYTORCH_OK, "an output of another shape")
   end subroutine failing_calls

   !> What cannot be loaded so, and what such a module cannot do
   subroutine refused()
      type(torch_pymodule) :: model
      type(torch_module) :: target
      type(torch_optimizer) :: optimizer
      character(:), allocatable :: errmsg
      integer :: stat
      logical :: done
      real(real32) :: x(3, 2), y(1, 2), loss

      call model%load(script("gpu_ranks.py"), per="gpu", device=trim(device), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no communicator", errmsg, "needs communicator=")
      call model%load(script("gpu_ranks.py"), per="gpu", communicator=world, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "no device", errmsg, 'needs device="cuda"')
      call model%load(script("gpu_ranks.py"), per="gpu", communicator=world, device="xpu", stat=stat, errmsg=errmsg)
      call expect_text(errmsg, 'it is "xpu"', "another device")
      call model%load(script("gpu_ranks.py"), per="gpu", communicator=world, device="cuda:63", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "an error before it is loaded", errmsg)
      call model%load(script("gpu_ranks.py"), config=[torch_in("way", "fail")], per="gpu", communicator=world, &
         device=trim(device), stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "ValueError: no good config", "an error while it is loaded")
      call model%load(script("gpu_ranks.py"), config=[torch_in("way", "end")], per="gpu", communicator=world, &
         device=trim(device), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "a process that ends while it loads", errmsg)
      call model%load(script("gpu_ranks.py"), config=[torch_in("factor", 1.0*rank)], per="gpu", communicator=world, &
         device=trim(device), stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "load different files, or with different options", "another config on each rank")

      call load(model)
      x = 1
      y = 1
      done = model%train([torch_in(x)], [torch_in(y)], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "training", errmsg)
      call expect(.not. done, "no step")
      call expect_text(errmsg, "share the GPU by MPS", "the advice about that")
      call model%checkpoint("test_gpu_ranks", stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "it learns nothing", "a checkpoint")
      call model%save("test_gpu_ranks.pt", stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "it learns nothing", "saving")
      call optimizer%create("SGD", model, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "its objects cannot be used here", "an optimizer")
      call target%load("polynomial.pt", backend="python", per="gpu", communicator=world, device=trim(device))
      call model%publish(target, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "its networks cannot be published", "publishing")
      call model%set_stream(stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "no stream of the program", "a stream")
   end subroutine refused

   !> Models that run without Python, and those that Python runs
   subroutine saved_models()
      type(torch_module) :: shared, own
      character(:), allocatable :: errmsg
      integer :: i, stat
      real(real32) :: x(1, 4), y(1, 4), theirs(1, 4)

      x = reshape([1.0, 2.0, 3.0, 4.0], [1, 4]) + rank
      call own%load("polynomial.pt")
      call own%forward([torch_in(x)], [torch_out(theirs)])
      call shared%load("polynomial.pt", communicator=world, per="gpu", device=trim(device), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "TorchScript", errmsg)
      do i = 1, 5
         call shared%forward([torch_in(x)], [torch_out(y)])
         call expect(all(abs(y - theirs) < 1e-4), "its numbers in "//shared%backend())
      end do
      call shared%load("polynomial.pt", communicator=world, per="gpu", device=trim(device), backend="python")
      call shared%forward([torch_in(x)], [torch_out(y)])
      call expect(all(abs(y - theirs) < 1e-4) .and. shared%backend() == "torchscript", "its numbers in Python")
   end subroutine saved_models

   !> What a run has learnt that is not shared: any rank restores it, or goes back to what was loaded, for all
   subroutine restored()
      type(torch_pymodule) :: shared, own
      character(:), allocatable :: errmsg
      integer :: i, stat, step
      real(real32) :: x(3, 4), loaded(1, 4), learnt(1, 4), theirs(1, 4)

      x = reshape([(real(i), i=1, 12)], [3, 4])/12 + rank
      if (rank == 0) then
         call own%load(script("gpu_ranks.py"))
         call own%call("learns")
         call own%forward([torch_in(x)], [torch_out(theirs)])
         call own%checkpoint("test_gpu_ranks_learnt", step=7)
      end if
      call load(shared, record=.true.)
      call shared%forward([torch_in(x)], [torch_out(loaded)])
      call expect_all(shared, x, loaded, "what was loaded")
      call ranks_wait()
      call shared%restore("test_gpu_ranks_learnt", found=step)
      call expect(step == 7, "the step of the checkpoint")
      call shared%forward([torch_in(x)], [torch_out(learnt)])
      call expect(all(abs(learnt - loaded) > 1e-3), "what was learnt is something else")
      if (rank == 0) call expect(all(abs(learnt - theirs) < 1e-5), "what was learnt")
      call expect_all(shared, x, learnt, "where all ranks restore it")
      call shared%restore("nowhere.ckpt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "no checkpoint", errmsg, "nowhere.ckpt")
      call expect_all(shared, x, learnt, "after one that is not there")
      call ranks_wait()
      if (rank == 1) call shared%reload()
      call ranks_wait()
      call expect_all(shared, x, loaded, "where one rank loads it again")
      call ranks_wait()
      if (rank == 2) call shared%restore("test_gpu_ranks_learnt/checkpoint-000000000007.ckpt")
      call ranks_wait()
      call expect_all(shared, x, learnt, "where one rank restores it")
      call ranks_wait()
   end subroutine restored

   subroutine expect_all(model, x, expected, what)
      type(torch_pymodule), intent(inout) :: model
      real(real32), intent(in), target :: x(:, :)
      real(real32), intent(in) :: expected(:, :)
      character(*), intent(in) :: what
      real(real32) :: y(1, size(x, 2))
      integer :: i

      do i = 1, 10  ! recorded in the end
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(all(abs(y - expected) < 1e-5), what)
      end do
   end subroutine expect_all

   !> Ranks that leave, a rank that is killed, and then the process that computes
   subroutine ended()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      character(:), allocatable :: errmsg
      integer :: i, stat
      integer(int64) :: process
      integer :: here
      real(real32) :: x(3, 2), before(1, 2), y(1, 2)

      x = rank
      call load(model)
      do i = 1, 4
         call model%forward([torch_in(x)], [torch_out(before)])
      end do
      call ranks_wait()
      if (rank == 2) call model%free()
      if (rank == 3) call ranks_die()
      if (rank < 2) then
         do i = 1, 6
            call model%forward([torch_in(x)], [torch_out(y)])
            call expect(all(abs(y - before) < 1e-5), "the others go on")
         end do
         call model%call("place", results=results)
         call results%scalar("process", process)
         call expect(process > 0, "the process that computes")
         if (rank == 0) call model%call("arrive", [torch_in(1)], [torch_out(here)])
         if (rank == 1) then
            here = 0
            do while (here == 0)
               call model%call("arrive", [torch_in(0)], [torch_out(here)])
            end do
            call model%call("die", stat=stat, errmsg=errmsg)
            call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "who has ended it", errmsg)
         end if
         do
            call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
            if (stat /= FTN_PYTORCH_OK) exit
         end do
         call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a call after that", errmsg, "the process that computes on")
         call expect_text(errmsg, "load again", "the advice")
      end if
   end subroutine ended

end program test_gpu_ranks
