! SPDX-License-Identifier: MIT
!> Training and evaluation mode of a TorchScript model that was saved in training mode. The argument is the backend.
program test_modes
   use, intrinsic :: iso_fortran_env, only : real32
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   real(real32), parameter :: epsilon_of_norm = 1e-5
   integer, parameter :: n = 64
   character(:), allocatable :: backend
   character(16) :: argument
   real(real32) :: x(1, n), t(1, n)
   integer :: i

   call get_command_argument(1, argument)
   backend = trim(argument)
   x(1, :) = [(real(i, real32)/n, i=1, n)]
   t = 0
   call evaluates_by_default()
   call evaluates_for_pytorch_fortran()
   call predicts_in_training_mode()
   call trains_in_training_mode()
   call refuses()
   call finish()

contains

   logical function in_training(model)
      type(torch_module), intent(in) :: model

      real(real32) :: mode(1)

      mode = 0
      call model%call("mode", [torch_copy([0.0])], [torch_out(mode)])
      in_training = mode(1) > 0
   end function in_training

   !> Prediction of the model with these statistics, which are those of all inputs so far
   function expected(mean, variance) result(y)
      real(real32), intent(in) :: mean, variance
      real(real32) :: y(1, n)

      y = (x - mean)/sqrt(variance + epsilon_of_norm)
   end function expected

   subroutine expect_predictions(model, y, what)
      type(torch_module), intent(in) :: model
      real(real32), intent(in) :: y(1, n)
      character(*), intent(in) :: what

      real(real32) :: found(1, n)
      integer :: call_number
      logical :: right

      right = .true.
      do call_number = 1, 60  ! in every form that the direct path has
         found = 0
         call model%forward([torch_in(x)], [torch_out(found)])
         right = right .and. all(abs(found - y) < 1e-5)
      end do
      call expect(right, what)
   end subroutine expect_predictions

   subroutine evaluates_by_default()
      type(torch_module) :: model

      call model%load("direct_modes.pt", backend=backend)
      call expect(.not. in_training(model), "evaluation mode by default")
      call expect_predictions(model, expected(0.0, 1.0), "the same number for the same input")
      call model%load("direct_modes.pt", backend=backend, training=.false.)
      call expect_predictions(model, expected(0.0, 1.0), "training=.false. says so")
      call model%reload()
      call expect(.not. in_training(model), "reload keeps the mode")
   end subroutine evaluates_by_default

   !> pytorch-fortran predicts in the mode of the file, torch_ftn in evaluation mode
   subroutine evaluates_for_pytorch_fortran()
      use torch_ftn, only : torch_module, torch_tensor, torch_tensor_wrap
      type(torch_module) :: model
      type(torch_tensor_wrap) :: inputs
      type(torch_tensor) :: output
      real(real32), pointer :: y(:, :)

      call model%load("direct_modes.pt")
      call inputs%create
      call inputs%add_array(x)
      call model%forward(inputs, output)
      call output%to_array(y)
      call expect(all(abs(y - expected(0.0, 1.0)) < 1e-5), "a program of pytorch-fortran")
   end subroutine evaluates_for_pytorch_fortran

   subroutine predicts_in_training_mode()
      type(torch_module) :: model
      real(real32) :: one(1, n), other(1, n)

      call model%load("direct_modes.pt", backend=backend, training=.true.)
      call expect(in_training(model), "training=.true.")
      call model%forward([torch_in(x)], [torch_out(one)])
      call model%forward([torch_in(x)], [torch_out(other)])
      call expect(any(one == 0) .and. any(one /= other), "predictions with dropout")
      call model%reload()
      call expect(in_training(model), "reload keeps training=.true.")
   end subroutine predicts_in_training_mode

   !> Steps of length zero, so that statistics are all that changes
   subroutine trains_in_training_mode()
      type(torch_module) :: model, loaded
      character(:), allocatable :: errmsg
      real(real32) :: loss, other_loss, mean, variance, after(1, n)
      integer :: stat

      call model%load("direct_modes.pt", backend=backend)
      call model%create_optimizer_sgd(0.0)
      call expect_predictions(model, expected(0.0, 1.0), "before training")
      call model%train([torch_in(x)], [torch_in(t)], loss)
      mean = sum(x)/n
      variance = sum((x - mean)**2)/(n - 1)
      after = expected(0.1*mean, 0.9 + 0.1*variance)
      call expect_predictions(model, after, "a step of training has changed the statistics")
      call expect(.not. in_training(model), "evaluation mode after training")
      call model%train([torch_in(x)], [torch_in(t(1, :))], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a step that fails", errmsg)
      call expect(.not. in_training(model), "evaluation mode after a step that failed")
      call model%train([torch_in(x)], [torch_in(t)], loss)
      call model%train([torch_in(x)], [torch_in(t)], other_loss)
      call expect(loss /= other_loss, "training with dropout")

      call model%load("direct_modes.pt", backend=backend)
      call model%create_optimizer_sgd(0.0)
      call model%train([torch_in(x)], [torch_in(t)], loss)
      call model%save("modes_" // backend // ".pt")
      call loaded%load("modes_" // backend // ".pt", backend=backend)
      call expect_predictions(loaded, after, "saved and loaded")
      call loaded%load("direct_modes.pt", backend=backend)
      call loaded%restore("modes_" // backend // ".pt")
      call expect_predictions(loaded, after, "saved and restored")
   end subroutine trains_in_training_mode

   subroutine refuses()
      type(torch_pymodule) :: python
      character(:), allocatable :: errmsg
      integer :: stat

      call python%load("direct_modes.pt", training=.true.)
      call expect(python%backend() == "torchscript", "torch_pymodule has the option, too")
      call python%load(script("blend.py"), training=.true., stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a script", errmsg, "sets the mode of its networks itself")
   end subroutine refuses
end program test_modes
