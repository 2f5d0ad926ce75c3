! SPDX-License-Identifier: MIT
!> Closures for LBFGS
module closures
   use ftn_pytorch
   implicit none
   private

   public :: model, x, y, calls, closure, fails, forgets

   type(torch_pymodule) :: model
   type(torch_tensor) :: x, y
   integer :: calls

contains

   !> The loss of the model, and a count
   subroutine closure(loss)
      type(torch_tensor), intent(inout) :: loss

      type(torch_tensor) :: prediction

      calls = calls + 1
      call model%forward([x%arg()], prediction)
      loss = torch_mean((prediction - y)**2)
   end subroutine closure

   !> Shapes that do not fit
   subroutine fails(loss)
      type(torch_tensor), intent(inout) :: loss

      type(torch_tensor) :: prediction, long

      call model%forward([x%arg()], prediction)
      call long%zeros([3, 7])
      loss = torch_mean(prediction - long)
   end subroutine fails

   !> No loss
   subroutine forgets(loss)
      type(torch_tensor), intent(inout) :: loss

      call loss%free()
   end subroutine forgets
end module closures

!> What belongs to a training loop in Fortran, each by itself: closures, groups, schedulers, scalers, averages, losses.
program test_training_parts
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use ftn_pytorch
   use check
   use closures
   implicit none

   integer, parameter :: n = 20
   real(real64), target :: points(2, n), wanted(1, n)
   character(:), allocatable :: errmsg
   integer :: stat, i

   do i = 1, n
      points(:, i) = [real(i, real64)/n - 0.5d0, sin(real(i, real64))]
      wanted(1, i) = points(1, i) - points(2, i)**2
   end do
   call x%from_array(points)
   call y%from_array(wanted)

   call closure_is_called_by_lbfgs()
   call tensors_are_trained()
   call sections_are_trained()
   call schedulers_work_together()
   call scaler_leaves_out_steps()
   call autocast_ends_with_its_scope()
   call averages_are_swapped()
   call losses_take_what_they_need()
   call finish()

contains

   !> A loaded model in its first state
   subroutine load(made)
      !> Receives it
      type(torch_pymodule), intent(inout) :: made

      call made%load(script("trained.py"))
   end subroutine load

   subroutine closure_is_called_by_lbfgs()
      type(torch_pymodule) :: reference
      type(torch_optimizer) :: optimizer
      real(real64) :: losses(4), same_losses(4)
      integer :: step

      call load(model)
      call optimizer%create("LBFGS", model, [torch_in("lr", 0.5d0), torch_in("max_iter", 5)])
      calls = 0
      do step = 1, size(losses)
         call optimizer%step(closure, losses(step))
      end do
      call expect(calls > size(losses), "the closure is called several times in a step")
      call load(reference)
      call reference%call("minimize_here", [x%arg(), y%arg(), torch_in(size(losses))], [torch_out(same_losses)])
      call expect(all(losses == same_losses), "LBFGS with a closure of Fortran computes what Python computes")

      call optimizer%step(fails, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a closure that fails ends the step with its status")
      call expect_text(errmsg, "Fortran (1, 20)", "and the text")
      call optimizer%step(forgets, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "so does one that leaves no loss")
      call expect_text(errmsg, "the closure has made no loss", "and says so")
      call optimizer%step(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "LBFGS needs a closure", errmsg, "closure")
      call optimizer%step(closure, losses(1))
      call expect(losses(1) < losses(4), "and goes on afterwards")
   end subroutine closure_is_called_by_lbfgs

   subroutine tensors_are_trained()
      type(torch_tensor) :: weight, bias, loss
      type(torch_optimizer) :: optimizer
      type(torch_scope) :: scope
      real(real64), target :: slope(1), offset(1)
      real(real64) :: norm
      integer :: step

      slope = 0
      offset = 0
      call weight%from_array(slope)
      call bias%from_array(offset)
      call weight%set_requires_grad()
      call bias%set_requires_grad()
      call optimizer%create("SGD", [weight], [torch_in("lr", 0.1d0), torch_in("momentum", 0.5d0)])
      call optimizer%add_group([bias], [torch_in("lr", 0.05d0)])
      do step = 1, 200
         call scope%begin()
         call optimizer%zero_grad()
         loss = torch_sum((weight*2d0 + bias - 3d0)**2 + (bias - 1d0)**2)
         call loss%backward()
         call optimizer%clip_grad_norm(1d3, norm=norm)
         call optimizer%step()
         call scope%end()
      end do
      call expect(abs(slope(1) - 1) < 1d-6 .and. abs(offset(1) - 1) < 1d-6, "arrays of Fortran are trained in place")
      call expect(norm < 1d-4, "the norm of the gradients is told")
   end subroutine tensors_are_trained

   !> All of a section is trained, as a whole array is, and nothing beside it
   subroutine sections_are_trained()
      character(*), parameter :: optimizers(*) = [character(12) :: "SGD", "SGD momentum", "Adam", "AdamW", "Adagrad", &
         "RMSprop"], layouts(*) = [character(8) :: "reversed", "same"]
      real(real32), target :: field(4, 5, 3)
      real(real32) :: first(4, 5, 3), whole(4, 5, 3)
      logical :: is_trained(4, 5, 3)
      type(torch_arg) :: part
      integer :: kind, layout, place

      first = reshape([(real(i, real32)/10, i=1, size(first))], shape(first))
      do kind = 1, size(optimizers)
         field = first
         call train_array(torch_out(field), optimizers(kind), layouts(1))
         whole = field
         do layout = 1, size(layouts)
            do place = 1, 6
               field = first
               is_trained = .false.
               select case (place)
               case (1)
                  is_trained(1:2, :, :) = .true.
                  part = torch_out(field(1:2, :, :))
               case (2)
                  is_trained(::3, 2:5:3, :) = .true.
                  part = torch_out(field(::3, 2:5:3, :))
               case (3)
                  is_trained(2, :, :) = .true.
                  part = torch_out(field(2, :, :))
               case (4)
                  is_trained(3, 4, :) = .true.
                  part = torch_out(field(3, 4, :))
               case (5)
                  is_trained(3, 5, 3) = .true.
                  part = torch_out(field(3, 5, 3))
               case (6)
                  is_trained(4, 5, 2) = .true.
                  part = torch_out(field(4:4, 5:5, 2:2))
               end select
               call train_array(part, optimizers(kind), layouts(layout))
               call expect(all(abs(pack(field - whole, is_trained)) < 1e-6) .and. &
                  all(abs(pack(field - first, .not. is_trained)) <= 0), &
                  trim(optimizers(kind)) // " trains section " // achar(48 + place) // " and nothing else")
            end do
         end do
      end do
   end subroutine sections_are_trained

   !> Three steps towards zero
   subroutine train_array(array, optimizer, layout)
      type(torch_arg), intent(in) :: array
      !> Its class, with "momentum" after it
      character(*), intent(in) :: optimizer, layout

      type(torch_optimizer) :: made
      type(torch_tensor) :: values, loss
      integer :: step

      call values%from_array(array, layout=trim(layout))
      call values%set_requires_grad()
      if (optimizer == "SGD momentum") then
         call made%create("SGD", [values], [torch_in("lr", 0.05d0), torch_in("momentum", 0.9d0)])
      else
         call made%create(trim(optimizer), [values], [torch_in("lr", 0.05d0)])
      end if
      do step = 1, 3
         call made%zero_grad()
         loss = torch_sum(values**2)
         call loss%backward()
         call made%step()
      end do
   end subroutine train_array

   subroutine schedulers_work_together()
      type(torch_tensor) :: weight, loss
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: parts(2), whole, plateau
      integer, target :: milestones(1)
      real(real64) :: rates(6)

      call weight%ones([1], dtype="float64", requires_grad=.true.)
      loss = torch_sum(weight*weight)
      call loss%backward()
      call optimizer%create("SGD", [weight], [torch_in("lr", 1d0)])
      call parts(1)%create("ConstantLR", optimizer, [torch_in("factor", 0.5d0), torch_in("total_iters", 10)])
      call parts(2)%create("ExponentialLR", optimizer, [torch_in("gamma", 0.1d0)])
      milestones = 3
      call whole%create("SequentialLR", optimizer, parts, [torch_in("milestones", milestones)])
      do i = 1, size(rates)
         call optimizer%step()
         call whole%step()
         rates(i) = whole%last_lr()
      end do
      call expect(all(abs(rates(:2) - 0.5d0) < 1d-12), "SequentialLR begins with the first scheduler")
      call expect(all(abs(rates(4:)/rates(3:5) - 0.1d0) < 1d-12), "and goes on with the second")
      call whole%step(1d0, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "it takes no metric")

      call optimizer%set("lr", 1d0)
      call plateau%create("ReduceLROnPlateau", optimizer, [torch_in("patience", 0), torch_in("factor", 0.5d0)])
      call plateau%step(1d0)
      call plateau%step(2d0)
      call expect(abs(plateau%last_lr() - 0.5d0) < 1d-15, "ReduceLROnPlateau decides by a metric")
      call plateau%step(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "and needs one")
      call plateau%create("LambdaLR", optimizer, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a scheduler that needs a Python function is refused")
      call expect_text(errmsg, "lr_lambda", "and the function named")
      call expect(abs(plateau%last_lr() - 0.5d0) < 1d-15, "a failed create leaves what was there")
   end subroutine schedulers_work_together

   subroutine scaler_leaves_out_steps()
      type(torch_tensor) :: weight, loss, scaled
      type(torch_optimizer) :: optimizer
      type(torch_grad_scaler) :: scaler
      type(torch_scope) :: scope
      real(real32), target :: value(1)
      real(real32) :: factor

      value = 1
      call weight%from_array(value)
      call weight%set_requires_grad()
      call optimizer%create("SGD", [weight], [torch_in("lr", 0.25d0)])
      call scaler%create(optimizer, [torch_in("init_scale", 1024d0), torch_in("growth_interval", 1)])
      call expect(scaler%get_scale() == 1024, "the scale is that of the option")
      call scaler%step(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a step needs gradients")
      do i = 1, 2
         factor = 1
         if (i == 2) factor = huge(factor)
         call scope%begin()
         call optimizer%zero_grad()
         loss = torch_sum(weight*factor)
         call scaler%scale(loss, scaled)
         call scaled%backward()
         call scaler%unscale()
         call scaler%step()
         call scaler%update()
         call scope%end()
         call expect(value(1) == 0.75, "a step is made, and one with infinite gradients left out")
      end do
      call expect(scaler%get_scale() == 1024, "the scale has grown and been halved")
   end subroutine scaler_leaves_out_steps

   subroutine autocast_ends_with_its_scope()
      type(torch_tensor) :: a, b, product
      type(torch_scope) :: outer, inner

      call a%ones([2, 2], dtype="float32", requires_grad=.true.)
      call b%ones([2, 2], dtype="float32")
      call outer%begin()
      call outer%autocast(dtype="bfloat16")
      product = matmul(a, b)
      call expect(product%dtype() == "bfloat16", "operators compute in lower precision")
      call inner%begin()
      call outer%autocast(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "only the innermost scope can switch")
      call inner%autocast("cpu", "float16")
      product = matmul(b, b)
      call expect(product%dtype() == "float16", "a scope inside has its own")
      call inner%end()
      product = matmul(a, b)
      call expect(product%dtype() == "bfloat16", "which ends with it")
      product = torch_sum(product)
      call product%backward()
      call outer%autocast(dtype="float17", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an element type that there is not")
      call expect_text(errmsg, "did you mean 'float16'?", "and the nearest")
      call outer%autocast(device="abacus", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a device that there is not")
      call outer%end()
      call a%grad(product)
      call expect(product%dtype() == "float32", "gradients are those of the tensors")
      product = matmul(a, b)
      call expect(product%dtype() == "float32", "nothing is left when the scope has ended")
      call outer%autocast(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a scope that is not open")
   end subroutine autocast_ends_with_its_scope

   subroutine averages_are_swapped()
      type(torch_averaged) :: mean, moving
      type(torch_results) :: parameters
      type(torch_tensor) :: scale
      real(real64) :: value

      call load(model)
      call mean%create(model)
      call moving%create(model, [torch_in("decay", 0.5d0)])
      call model%parameters(parameters)
      call parameters%get("scale", scale)
      do i = 1, 3
         call torch_call("fortran.overwrite", [scale%arg(), torch_copy(real(i, real64))])
         call mean%update()
         call moving%update()
      end do
      call mean%swap()
      call scale%copy_to(torch_out(value))
      call expect(abs(value - 2) < 1d-15, "the mean of three updates")
      call mean%update(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "the average is not averaged")
      call mean%swap()
      call scale%copy_to(torch_out(value))
      call expect(value == 3, "a second swap brings the weights back")
      call moving%swap()
      call scale%copy_to(torch_out(value))
      call expect(abs(value - (0.5d0*(0.5d0*1 + 0.5d0*2) + 0.5d0*3)) < 1d-15, "the moving average forgets")
   end subroutine averages_are_swapped

   subroutine losses_take_what_they_need()
      type(torch_loss) :: loss_of
      type(torch_tensor) :: a, b, c, loss
      type(torch_results) :: parameters
      integer, target :: cutoffs(2)
      real(real64), target :: anchor(2, 1), near(2, 1), far(2, 1), weights(3), scores(3, 2)
      integer(int64), target :: classes(2)
      real(real64) :: value, cross

      anchor = 0
      near = 3
      far = 4
      call a%from_array(anchor)
      call b%from_array(near)
      call c%from_array(far)
      call loss_of%create("TripletMarginLoss", [torch_in("margin", 10d0), torch_in("eps", 0d0)])
      call loss_of%forward([a%arg(), b%arg(), c%arg()], loss)
      call loss%copy_to(torch_out(value))
      call expect(abs(value - (10 + sqrt(18d0) - sqrt(32d0))) < 1d-12, "a loss of three tensors")

      call loss_of%create("L1Loss", [torch_in("reduction", "sum")])
      call loss_of%forward(a, b, loss)
      call loss%copy_to(torch_out(value))
      call expect(value == 6, "an option that is a text")

      weights = [1d0, 2d0, 4d0]
      scores = reshape([0d0, 0d0, 1d0, 2d0, 0d0, 0d0], [3, 2])
      classes = [2_int64, 0_int64]
      call a%from_array(scores)
      call b%from_array(classes)
      call loss_of%create("CrossEntropyLoss", [torch_in("weight", weights)])
      weights = 0
      call loss_of%forward(a, b, loss)
      call loss%copy_to(torch_out(value))
      cross = (4*(log(2 + exp(1d0)) - 1) + 1*(log(2 + exp(2d0)) - 2))/5
      call expect(abs(value - cross) < 1d-12, "an option that is an array is copied")
      call loss_of%parameters(parameters, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a loss without parameters")
      cutoffs = [1, 2]
      call loss_of%create("AdaptiveLogSoftmaxWithLoss", [torch_in("in_features", 3), torch_in("n_classes", 4), &
         torch_in("cutoffs", cutoffs)])
      call loss_of%parameters(parameters)
      call expect(parameters%name(1) == "head.weight", "and one with some")
   end subroutine losses_take_what_they_need
end program test_training_parts
