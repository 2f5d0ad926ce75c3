! SPDX-License-Identifier: MIT
!> A training loop in Fortran: parameters, optimizer, scheduler, loss, clipping, averages, beside the same in Python.
program test_training
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use ftn_pytorch
   use check
   implicit none

   integer, parameter :: n = 20, steps = 8
   real(real64), target :: points(2, n), wanted(1, n)
   type(torch_tensor) :: x, y
   character(:), allocatable :: errmsg
   integer :: stat, i

   do i = 1, n
      points(:, i) = [real(i, real64)/n - 0.5d0, sin(real(i, real64))]
      wanted(1, i) = points(1, i) - points(2, i)**2
   end do
   call x%from_array(points)
   call y%from_array(wanted)

   call parameters_are_those_of_the_model()
   call loop_is_that_of_python()
   call restart_goes_on_with_the_same_bits()
   call objects_end_with_their_variables()
   call what_is_wrong_is_told()
   call finish()

contains

   !> A loaded model in its first state
   subroutine load(model)
      !> Receives it
      type(torch_pymodule), intent(inout) :: model

      call model%load(script("trained.py"))
   end subroutine load

   subroutine parameters_are_those_of_the_model()
      type(torch_pymodule) :: model
      type(torch_results) :: parameters
      type(torch_tensor) :: weight, output, gradient
      real(real64), pointer :: values(:, :), bias(:), slope(:)
      real(real64) :: before(1, n), after(1, n)

      call load(model)
      call model%parameters(parameters)
      call expect(parameters%count() == 5, "each parameter is there")
      call expect(parameters%name(1) == "net.0.weight", "the name of the network comes first")
      call expect(parameters%name(5) == "scale", "a lone parameter is there too")
      call parameters%get("net.0.weight", weight)
      call expect(all(weight%shape() == [2_int64, 8_int64]), "its shape is in Fortran order")
      call model%forward([x%arg()], [torch_out(before)])
      call weight%to_array(values)
      values = 0
      call model%forward([x%arg()], [torch_out(after)])
      call expect(any(abs(after - before) > 1d-6), "what Fortran writes is what the model computes with")
      call expect(maxval(after) - minval(after) < 1d-15, "zero weights forget the input")

      call parameters%get("net.2.bias", weight)
      call model%forward([x%arg()], output)
      call output%backward(gradient=y)
      call weight%grad(gradient)
      call gradient%to_array(slope)
      call expect(abs(slope(1) - sum(wanted)) < 1d-12, "the gradient of a parameter is current")
      call weight%to_array(bias)
      call weight%zero_grad()
      call weight%set_requires_grad(.false.)
      call model%forward([x%arg()], output)
      call output%backward(gradient=y)
      call gradient%to_array(slope, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a frozen parameter gets no gradient")
   end subroutine parameters_are_those_of_the_model

   !> Train from the state that the objects are in
   subroutine train(model, optimizer, scheduler, losses, rates)
      type(torch_pymodule), intent(in) :: model
      type(torch_optimizer), intent(in) :: optimizer
      type(torch_scheduler), intent(in) :: scheduler
      real(real64), intent(out) :: losses(:), rates(:)

      type(torch_loss) :: mse
      type(torch_scope) :: scope
      type(torch_tensor) :: prediction, loss
      integer :: step

      call mse%create("MSELoss")
      do step = 1, size(losses)
         call scope%begin()
         call optimizer%zero_grad()
         call model%forward([x%arg()], prediction)
         call mse%forward(prediction, y, loss)
         call loss%backward()
         call optimizer%clip_grad_norm(0.5d0)
         call optimizer%step()
         call scheduler%step()
         call loss%copy_to(torch_out(losses(step)))
         rates(step) = scheduler%last_lr()
         call scope%end()
      end do
   end subroutine train

   subroutine create(model, optimizer, scheduler)
      type(torch_pymodule), intent(in) :: model
      type(torch_optimizer), intent(inout) :: optimizer
      type(torch_scheduler), intent(inout) :: scheduler

      call optimizer%create("AdamW", model, [torch_in("lr", 0.05d0)])
      call scheduler%create("StepLR", optimizer, [torch_in("step_size", 3), torch_in("gamma", 0.5d0)])
   end subroutine create

   subroutine loop_is_that_of_python()
      type(torch_pymodule) :: model, reference
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      real(real64) :: losses(steps), rates(steps), same_losses(steps), same_rates(steps), rate, betas(2)
      real(real32) :: single

      call load(model)
      call create(model, optimizer, scheduler)
      call train(model, optimizer, scheduler, losses, rates)
      call load(reference)
      call reference%call("train_here", [x%arg(), y%arg(), torch_in(steps)], &
         [torch_out(same_losses), torch_out(same_rates)])
      call expect(all(losses == same_losses), "the losses are those of Python bit for bit")
      call expect(all(rates == same_rates), "and so are the learning rates")
      call expect(losses(steps) < losses(1), "the loss falls")

      call optimizer%get("lr", rate)
      call expect(abs(rate - rates(steps)) < 1d-16, "a setting is read")
      call optimizer%get("betas", torch_out(betas))
      call expect(all(abs(betas - [0.9d0, 0.999d0]) < 1d-15), "one of two numbers too")
      call optimizer%set("lr", 0.125)
      call optimizer%get("lr", single)
      call expect(single == 0.125, "a setting is changed, of all groups")
      call optimizer%set([torch_in("amsgrad", .true.), torch_in("weight_decay", 0d0)], group=1)
      call optimizer%get("weight_decay", rate)
      call expect(rate == 0, "several are changed")
   end subroutine loop_is_that_of_python

   subroutine restart_goes_on_with_the_same_bits()
      type(torch_pymodule) :: model, again
      type(torch_optimizer) :: optimizer, other
      type(torch_scheduler) :: scheduler, another
      real(real64), dimension(4) :: losses, same_losses, rates, same_rates

      call load(model)
      call create(model, optimizer, scheduler)
      call train(model, optimizer, scheduler, losses, rates)
      call model%checkpoint("test_training_checkpoints", step=1000)
      call optimizer%save("test_training_optimizer")
      call train(model, optimizer, scheduler, losses, rates)

      call load(again)
      call create(again, other, another)
      call again%restore("test_training_checkpoints")
      call train(again, other, another, same_losses, same_rates)
      call expect(all(losses == same_losses), "a checkpoint of the model keeps its optimizer bit for bit")
      call expect(all(rates == same_rates), "and its scheduler")

      call other%set("lr", 3d0)
      call other%restore("test_training_optimizer")
      call other%get("lr", rates(1))
      call expect(abs(rates(1) - 0.025d0) < 1d-16, "an optimizer has a file of its own where that is wanted")
      call again%free()
      call model%free()
   end subroutine restart_goes_on_with_the_same_bits

   !> A file with the state of an optimizer cannot be read where there is none
   subroutine objects_end_with_their_variables()
      type(torch_pymodule) :: model, again
      type(torch_optimizer), allocatable :: kept
      type(torch_scheduler) :: scheduler

      call load(model)
      call load(again)
      call make_and_forget(model)
      call model%save("test_training_without")
      call again%restore("test_training_without", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "an optimizer is freed with its variable", errmsg)
      allocate (kept)
      call create(model, kept, scheduler)
      call model%save("test_training_with")
      call again%restore("test_training_with", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "one that lives is in the file", errmsg)
      call expect_text(errmsg, "create it before restore", "which the text explains")
      deallocate (kept)
      call scheduler%free()
      call model%save("test_training_without")
      call again%restore("test_training_without", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "an allocatable one as well", errmsg)
   end subroutine objects_end_with_their_variables

   subroutine make_and_forget(model)
      type(torch_pymodule), intent(in) :: model

      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_averaged) :: average

      call create(model, optimizer, scheduler)
      call average%create(model)
   end subroutine make_and_forget

   subroutine what_is_wrong_is_told()
      type(torch_pymodule) :: model
      type(torch_optimizer) :: optimizer
      type(torch_loss) :: loss_of
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: none(0), constant, loss

      call optimizer%step(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "an optimizer that was never created", errmsg, "create")
      call optimizer%create("SGD", model, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a model that was never loaded")
      call load(model)
      call optimizer%create("AdmW", model, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an unknown optimizer", errmsg, "did you mean 'AdamW'?")
      call optimizer%create("AdamW", model, [torch_in("learning_rate", 1d-3)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "an unknown option")
      call optimizer%create("AdamW", model, [torch_in("lr", "fast")], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an option of the wrong type")
      call optimizer%create("SGD", none, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "nothing to train")
      call loss_of%create("MSLoss", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an unknown loss", errmsg, "did you mean 'MSELoss'?")
      call optimizer%create("SGD", model, [torch_in("lr", 0.1d0)])
      call optimizer%step(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "backward was not called", errmsg, "call backward")
      call scheduler%create("StepLR", optimizer, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "an option that is missing", errmsg, "'step_size'")
      call constant%ones([1])
      call loss_of%create("MSELoss")
      call loss_of%forward(constant, none_of(), loss, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a tensor without contents")
      call model%free()
      call optimizer%create("SGD", model, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a model that was freed")
      call optimizer%zero_grad()
      call optimizer%free()
      call optimizer%zero_grad(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "an optimizer that was freed")
   end subroutine what_is_wrong_is_told

   !> A tensor without contents
   function none_of() result(tensor)
      type(torch_tensor) :: tensor

      call tensor%free()
   end function none_of
end program test_training
