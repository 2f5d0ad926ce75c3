! SPDX-License-Identifier: MIT
!> Training on the direct path: the optimizers, what they save, and the same numbers as through Python.
!>
!> With an argument, Python is started before libtorch; without, libtorch serves the direct path first.
program test_direct_training
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, finish
   use ftn_pytorch
   implicit none

   character(*), parameter :: optimizers(*) = [character(16) :: "sgd", "sgd momentum", "sgd nesterov", &
      "sgd dampening", "adam", "adam amsgrad", "adamw", "adamw decay"]
   integer, parameter :: steps = 12
   real(real32), target :: x(16, 32), t(4, 32)
   type(torch_module) :: starter
   !> Saved half-way; one for each way of running this program, which may run at the same time
   character(:), allocatable :: half
   integer :: i

   half = merge("direct_half_beside.pt", "direct_half_alone.pt ", command_argument_count() > 0)

   call random_init(repeatable=.true., image_distinct=.false.)
   call random_number(x)
   t = x(1:4, :)*2 - 1
   if (command_argument_count() > 0) call starter%load("direct_mlp.pt", backend="python")
   do i = 1, merge(1, size(optimizers), command_argument_count() > 0)
      call same_numbers(trim(optimizers(i)))
      call resumes(trim(optimizers(i)), "direct", "direct")
   end do
   call resumes("sgd momentum", "python", "python")
   call resumes("sgd momentum", "direct", "python")
   call resumes("sgd dampening", "direct", "python")
   call resumes("sgd dampening", "python", "direct")
   call resumes("adam amsgrad", "python", "python")
   call resumes("adam amsgrad", "direct", "python")
   call resumes("adam amsgrad", "python", "direct")
   call same_predictions()
   call predicts_between_steps()
   call refuses()
   call finish()

contains

   subroutine create(model, optimizer)
      type(torch_module), intent(in) :: model
      character(*), intent(in) :: optimizer

      select case (optimizer)
      case ("sgd")
         call model%create_optimizer_sgd(0.05_real32)
      case ("sgd momentum")
         call model%create_optimizer_sgd(0.05_real64, momentum=0.9_real64, weight_decay=0.01_real64)
      case ("sgd nesterov")
         call model%create_optimizer_sgd(0.05, momentum=0.9, nesterov=.true.)
      case ("sgd dampening")
         call model%create_optimizer_sgd(0.05, momentum=0.9, dampening=0.25)
      case ("adam")
         call model%create_optimizer_adam(1e-2)
      case ("adam amsgrad")
         call model%create_optimizer_adam(1e-2, beta1=0.8, beta2=0.99, eps=1e-6, weight_decay=0.1, amsgrad=.true.)
      case ("adamw")
         call model%create_optimizer_adamw(1e-2_real64)
      case ("adamw decay")
         call model%create_optimizer_adamw(1e-2, weight_decay=0.1)
      end select
   end subroutine create

   subroutine losses_of(model, losses)
      type(torch_module), intent(in) :: model
      real(real64), intent(inout) :: losses(:)

      integer :: step

      do step = 1, size(losses)
         call model%train([torch_in(x)], [torch_in(t)], losses(step))
      end do
   end subroutine losses_of

   subroutine same_numbers(optimizer)
      character(*), intent(in) :: optimizer

      type(torch_module) :: direct, python
      real(real64) :: here(steps), there(steps)
      real(real32) :: y(4, 32), z(4, 32)

      call direct%load("direct_mlp.pt", backend="direct")
      call create(direct, optimizer)
      call losses_of(direct, here)
      call python%load("direct_mlp.pt", backend="python")
      call create(python, optimizer)
      call losses_of(python, there)
      call expect(direct%backend() == "direct" .and. python%backend() == "torchscript", optimizer // ": backends")
      call expect(here(steps) < here(1), optimizer // ": the loss goes down")
      call expect(all(abs(here - there) <= 1e-6*there), optimizer // ": losses as through Python")
      call direct%forward([torch_in(x)], [torch_out(y)])
      call python%forward([torch_in(x)], [torch_out(z)])
      call expect(all(abs(y - z) <= 1e-5), optimizer // ": predictions as through Python")
   end subroutine same_numbers

   !> Stopped after half of the steps, saved, and resumed by load, restore and reload
   subroutine resumes(optimizer, writer, reader)
      character(*), intent(in) :: optimizer, writer, reader

      type(torch_module) :: model, loaded, restored
      real(real64) :: before(steps), after(steps), again(steps), tolerance
      character(:), allocatable :: what

      what = optimizer // " from " // writer // " to " // reader
      tolerance = merge(0d0, 1d-6, writer == reader)
      call model%load("direct_mlp.pt", backend=writer)
      call create(model, optimizer)
      call losses_of(model, before)
      call model%save(half)
      call losses_of(model, after)

      call loaded%load(half, backend=reader)
      call losses_of(loaded, again)
      call expect(all(abs(again - after) <= tolerance*after), what // ": load")
      call loaded%reload()
      call losses_of(loaded, again)
      call expect(all(abs(again - after) <= tolerance*after), what // ": reload")
      call restored%load("direct_mlp.pt", backend=reader)
      call restored%restore(half)
      call losses_of(restored, again)
      call expect(all(abs(again - after) <= tolerance*after), what // ": restore")
   end subroutine resumes

   !> The frozen model, its layers rewritten, gives the very numbers of the model that Python runs
   subroutine same_predictions()
      character(*), parameter :: files(*) = [character(24) :: "direct_mlp.pt", "direct_mlp_eval.pt", &
         "direct_mlp_traced.pt"]
      type(torch_module) :: direct, python
      real(real32) :: y(4, 32), z(4, 32), cube(16, 4, 8), a(4, 4, 8), b(4, 4, 8)
      integer :: i, call_number

      cube = reshape(x, shape(cube))
      do i = 1, size(files)
         call direct%load(files(i), backend="direct")
         call python%load(files(i), backend="python")
         call python%forward([torch_in(x)], [torch_out(z)])
         call python%forward([torch_in(cube)], [torch_out(b)])
         do call_number = 1, 3
            call direct%forward([torch_in(x)], [torch_out(y)])
            call direct%forward([torch_in(cube)], [torch_out(a)])
            call expect(all(y == z), trim(files(i)) // ": predictions of matrices")
            call expect(all(a == b), trim(files(i)) // ": predictions of more axes")
         end do
      end do
   end subroutine same_predictions

   !> Predictions follow each step, whatever form of the model computes them
   subroutine predicts_between_steps()
      type(torch_module) :: model
      real(real32) :: y(4, 32)
      real(real64) :: loss
      integer :: step, call_number
      logical :: right

      call model%load("direct_mlp_eval.pt", backend="direct")
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%create_optimizer_adam(1e-3)
      right = .true.
      do step = 1, 3
         do call_number = 1, merge(60, 2, step == 2)  ! enough to be frozen again
            call model%forward([torch_in(x)], [torch_out(y)])
         end do
         call model%train([torch_in(x)], [torch_in(t)], loss)
         right = right .and. abs(loss - sum((y - t)**2)/size(t)) < 1e-5*loss
      end do
      call expect(right, "the loss is that of the prediction before")
      call model%restore("direct_mlp_eval.pt")
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%train([torch_in(x)], [torch_in(t)], loss)
      call expect(abs(loss - sum((y - t)**2)/size(t)) < 1e-5*loss, "and after restore")
   end subroutine predicts_between_steps

   subroutine refuses()
      type(torch_module) :: model
      character(:), allocatable :: errmsg
      real(real64) :: loss, wide(4, 32)
      integer :: stat

      call model%load("direct_mlp.pt", backend="direct")
      call model%train([torch_in(x)], [torch_in(t)], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "train without optimizer", errmsg, "create_optimizer_sgd")
      call model%create_optimizer_sgd(-0.1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a negative learning rate", errmsg)
      call model%create_optimizer_sgd(0.1, nesterov=.true., stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "nesterov without momentum", errmsg)
      call model%create_optimizer_sgd(0.1, momentum=0.9, nesterov=.true., dampening=0.5, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "nesterov with dampening", errmsg)
      call model%create_optimizer_adam(0.1, beta1=1.0, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "beta1 = 1", errmsg)
      call model%create_optimizer_sgd(0.1)
      call model%train([torch_in(x)], [torch_in(t(1, :))], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a target of another shape", errmsg, "train to the mean")
      wide = t
      call model%train([torch_in(x)], [torch_in(wide)], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a target of another type", errmsg)
      call model%train([torch_in(x)], [torch_in(t), torch_in(t)], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "two targets", errmsg)
      call model%save("no_such_folder/model.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "save to nowhere", errmsg, "there is no folder")
      call model%restore("no_such_folder/model.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "restore from nowhere", errmsg)
      call model%restore(".", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "restore from a folder", errmsg)
      call model%restore("direct_mlp.pt", step=3, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "restore of a step", errmsg, 'backend="python"')
      call model%restore("direct_two.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "restore of another model", errmsg, "0.bias")
      call model%restore("direct_foreign.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "restore of another file", errmsg)
      call model%load("direct_two.pt", backend="direct")
      call model%create_optimizer_sgd(0.1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "nothing to be trained", errmsg)
   end subroutine refuses
end program test_direct_training
