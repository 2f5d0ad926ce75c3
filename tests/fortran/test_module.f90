! SPDX-License-Identifier: MIT
!> A torch_module runs, trains, saves and reads TorchScript models, and a torch_pymodule runs them too.
!>
!> The first argument of the program is the backend for load, the second what model%backend() is then expected to say.
program test_module
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: maker
   character(16) :: backend, expected

   call random_init(repeatable=.true., image_distinct=.true.)
   call get_command_argument(1, backend)
   call get_command_argument(2, expected)
   call maker%load(script("make_models.py"))
   call maker%call("write_models")
   call forwards()
   call trains()
   call saves_and_reads()
   call calls_methods()
   call runs_as_pymodule()
   call refuses()
   call finish()

contains

   subroutine forwards()
      type(torch_module) :: model
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      type(torch_results) :: results
      real(real64) :: x(2, 3), y(2, 3)
      real(real64), pointer :: p(:, :)

      x = reshape([1, 2, 3, 4, 5, 6], [2, 3])
      call model%load("affine.pt", backend=backend)
      call expect(model%backend() == expected, "a TorchScript model")
      call model%forward([torch_in(x)], [torch_out(y)], flags=torch_use_inference_mode)
      call expect(all(y == 2*x + 1), "forward into outputs")
      call model%forward([torch_in(x)], results)
      call results%to_array(1, p)
      call expect(all(p == y), "forward with results")
      call list%create()
      call list%add_array(x)
      call model%forward(list, output)
      call output%to_array(p)
      call expect(all(p == y), "forward with a list")
      call model%forward(list, output, torch_use_inference_mode)
      call output%to_array(p)
      call expect(all(p == y), "forward with a list and flags")
   end subroutine forwards

   subroutine trains()
      type(torch_module) :: model
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: target
      character(:), allocatable :: errmsg
      real(real64) :: x(2, 8), t(2, 8), first, loss
      real(real32) :: single
      logical :: completed
      integer :: step, stat

      call random_number(x)
      t = 3*x
      call model%load("affine.pt", backend=backend)
      call model%train([torch_in(x)], [torch_in(t)], loss, stat=stat, errmsg=errmsg)
      call expect(stat /= 0, "train before create_optimizer_sgd")
      call expect_text(errmsg, "create_optimizer_sgd", "train before create_optimizer_sgd: what to do")
      call model%create_optimizer_sgd(0.1_real32)
      call model%create_optimizer_sgd(0.1_real64)
      call model%train([torch_in(x)], [torch_in(t)], first)
      do step = 1, 100
         call model%train([torch_in(x)], [torch_in(t)], loss)
      end do
      call expect(loss < first/2, "train: the loss goes down")
      call model%train([torch_in(x)], [torch_in(t)], single)
      call expect(single <= real(loss, real32), "train: real32")
      completed = .true.
      call model%train_step([torch_in(x)], [torch_in(t)], loss, completed)
      call expect(.not. completed, "train_step")
      completed = .true.
      call model%train_step([torch_in(x)], [torch_in(1.0)], loss, completed, stat=stat)
      call expect(stat /= 0 .and. completed, "train_step: a failure leaves completed alone")
      call list%create()
      call list%add_array(x)
      call target%from_array(t)
      call model%train(list, target, loss)
      call model%train(list, target, single)
      call expect(single <= real(first, real32), "train with a list")
      completed = .true.
      call model%train_step(list, target, loss, completed)
      call expect(.not. completed .and. loss <= real(single, real64), "train_step with a list")
   end subroutine trains

   subroutine saves_and_reads()
      type(torch_module) :: model, other
      real(real64) :: x(2, 4), t(2, 4), y(2, 4), z(2, 4), loss

      call random_number(x)
      t = -x
      call model%load("affine.pt", backend=backend)
      call model%create_optimizer_sgd(0.5)
      call model%train([torch_in(x)], [torch_in(t)], loss)
      call model%save("trained.pt")
      call model%forward([torch_in(x)], [torch_out(y)])
      call other%load("trained.pt", backend=backend)
      call other%forward([torch_in(x)], [torch_out(z)])
      call expect(all(y == z), "what was saved is loaded")
      call other%load("affine.pt", backend=backend)
      call other%restore("trained.pt")
      call other%forward([torch_in(x)], [torch_out(z)])
      call expect(all(y == z), "what was saved is restored")
      call other%reload()
      call other%forward([torch_in(x)], [torch_out(z)])
      call expect(all(abs(z - (2*x + 1)) < 1e-12_real64), "reload reads the file of load again")
   end subroutine saves_and_reads

   subroutine calls_methods()
      type(torch_module) :: model
      type(torch_results) :: results
      real(real64) :: x(2), up(2), down(2)

      x = [1, 2]
      call model%load("affine.pt", backend=backend)
      call expect(model%has("both") .and. .not. model%has("neither"), "methods of the model")
      call model%call("both", [torch_in(x), torch_in("shift", 0.5_real64)], [torch_out(up), torch_out(down)])
      call expect(all(up == x + 0.5) .and. all(down == x - 0.5), "a method with two outputs")
      call model%call("both", [torch_in(x)], results)
      call expect(results%count() == 2, "a method with results")
   end subroutine calls_methods

   subroutine runs_as_pymodule()
      type(torch_pymodule) :: model
      type(torch_module) :: scripted
      real(real64) :: x(2), y(2)

      x = [1, 2]
      call model%load("affine.pt")
      call expect(model%backend() == "torchscript", "torch_pymodule falls back to TorchScript")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == 2*x + 1), "torch_pymodule runs TorchScript")
      call scripted%load(script("look.py"), backend="python")
      call expect(scripted%backend() == "script", "torch_module runs a script")
   end subroutine runs_as_pymodule

   subroutine refuses()
      type(torch_module) :: model
      real(real64) :: x(2, 3), t(3), loss
      integer :: stat

      x = 1
      t = 1
      call model%load(script("check_is_no_model.txt"), backend=backend, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "no such file")
      call model%load("affine.pt", config=[torch_in("lr", 0.1)], backend=backend, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a saved model takes no configuration")
      call model%load("affine.pt", backend=backend)
      call model%create_optimizer_sgd(0.1)
      call model%train([torch_in(x)], [torch_in(t)], loss, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "prediction and target of unequal shape")
   end subroutine refuses
end program test_module
