! SPDX-License-Identifier: MIT
!> What belongs to a training beside the optimizer: losses, schedulers, averages of the weights
module parts
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: average, schedule, use_losses

contains

   subroutine use_losses()
      character(17), parameter :: classes(6) = [character(17) :: "MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss", &
         "BCEWithLogitsLoss", "SoftMarginLoss"]
      real(real32), target :: weights(3)
      type(torch_loss) :: loss_of
      type(torch_tensor) :: output, goal, cost
      integer :: i

      theme = "losses"
      call goal%from_array(torch_in(cells(1:1, :)))
      call loss_of%forward(goal, goal, cost, stat=stat, errmsg=errmsg)
      call saw("forward: nothing created")
      call loss_of%create("NoLoss", stat=stat, errmsg=errmsg)
      call saw("create: no such class")
      call loss_of%create("Linear", stat=stat, errmsg=errmsg)
      call saw("create: a class that is no loss")
      call loss_of%create("L1Loss", [torch_in("nothing", 1)], stat=stat, errmsg=errmsg)
      call saw("create: no such option")
      call loss_of%create("L1Loss", [torch_in("reduction", 1)], stat=stat, errmsg=errmsg)
      call saw("create: a number for a text")
      call model%forward([torch_in(x)], output, stat=stat, errmsg=errmsg)
      call saw("forward: into a tensor")
      do i = 1, size(classes)
         call loss_of%create(trim(classes(i)), [torch_in("reduction", "sum")], stat=stat, errmsg=errmsg)
         call loss_of%forward(output, goal, cost, stat=stat, errmsg=errmsg)
         if (stat == 0) call cost%copy_to(torch_out(loss))
         call saw("forward: " // trim(classes(i)))
      end do
      call loss_of%forward([output%arg()], cost, stat=stat, errmsg=errmsg)
      call saw("forward: no target")
      call loss_of%forward([output%arg(), goal%arg(), goal%arg()], cost, stat=stat, errmsg=errmsg)
      call saw("forward: two targets")
      call goal%from_array(torch_in(narrow))
      call loss_of%forward(output, goal, cost, stat=stat, errmsg=errmsg)
      call saw("forward: half a target")
      call loss_of%parameters(results, stat=stat, errmsg=errmsg)
      call saw("parameters: there are none")
      weights = [1.0, 2.0, 4.0]
      call loss_of%create("CrossEntropyLoss", [torch_in("weight", weights)], stat=stat, errmsg=errmsg)
      weights = 0
      call output%from_array(torch_in(x))
      call goal%from_array(torch_copy(int(whole(1, :), int64)))
      call loss_of%forward(output, goal, cost, stat=stat, errmsg=errmsg)
      if (stat == 0) call cost%copy_to(torch_out(loss))
      call saw("forward: CrossEntropyLoss")
      call goal%from_array(torch_in(whole(1, :)))
      call loss_of%forward(output, goal, cost, stat=stat, errmsg=errmsg)
      call saw("forward: classes of int32")
      call loss_of%free()
      call loss_of%forward(output, goal, cost, stat=stat, errmsg=errmsg)
      call saw("forward: freed")
      call loss_of%free()
   end subroutine use_losses

   !> Rates, and steps with them
   subroutine schedule(optimizer)
      !> Of the model, which has gradients
      type(torch_optimizer), intent(in) :: optimizer

      type(torch_scheduler) :: scheduler, both(2)
      integer, target :: places(2)

      theme = "schedules"
      call scheduler%step(stat=stat, errmsg=errmsg)
      call saw("step: nothing created")
      call scheduler%create("NoLR", optimizer, stat=stat, errmsg=errmsg)
      call saw("create: no such class")
      call scheduler%create("StepLR", optimizer, stat=stat, errmsg=errmsg)
      call saw("create: an option is missing")
      call scheduler%create("StepLR", optimizer, [torch_in("step_sise", 2)], stat=stat, errmsg=errmsg)
      call saw("create: no such option")
      call scheduler%create("StepLR", optimizer, [torch_in("step_size", "two")], stat=stat, errmsg=errmsg)
      call saw("create: a text as number of steps")
      call scheduler%create("LinearLR", optimizer, [torch_in("start_factor", 2d0)], stat=stat, errmsg=errmsg)
      call saw("create: a factor above one")
      call scheduler%create("LambdaLR", optimizer, stat=stat, errmsg=errmsg)
      call saw("create: a class that needs a function")
      places = [1, 3]
      call follow("StepLR", torch_in("step_size", 2), torch_in("gamma", 0.3d0))
      call follow("MultiStepLR", torch_in("milestones", places), torch_in("gamma", 0.3d0))
      call follow("ExponentialLR", torch_in("gamma", 0.7d0))
      call follow("CosineAnnealingLR", torch_in("T_max", 3), torch_in("eta_min", 0.01d0))
      call follow("LinearLR", torch_in("start_factor", 0.3d0), torch_in("total_iters", 3))
      call follow("PolynomialLR", torch_in("total_iters", 4), torch_in("power", 1.5d0))
      call follow("ConstantLR", torch_in("factor", 0.3d0), torch_in("total_iters", 2))
      call follow("ReduceLROnPlateau", torch_in("patience", 1), torch_in("factor", 0.3d0))
      call optimizer%set("lr", 0.2d0)
      call both(1)%create("LinearLR", optimizer, [torch_in("total_iters", 2)])
      call both(2)%create("ExponentialLR", optimizer, [torch_in("gamma", 0.7d0)])
      call scheduler%create("ChainedScheduler", optimizer, both, stat=stat, errmsg=errmsg)
      call step_with("ChainedScheduler", optimizer, scheduler)
      second = real(scheduler%last_lr(group=2, stat=stat, errmsg=errmsg))
      if (stat /= 0) second = -1
      call saw("last_lr: no such group")
      call scheduler%free()
      call scheduler%step(stat=stat, errmsg=errmsg)
      call saw("step: freed")
      call scheduler%free()

   contains

      subroutine follow(class_name, option, other)
         character(*), intent(in) :: class_name
         type(torch_arg), intent(in) :: option
         type(torch_arg), intent(in), optional :: other

         call optimizer%set("lr", 0.2d0)
         if (present(other)) then
            call scheduler%create(class_name, optimizer, [option, other], stat=stat, errmsg=errmsg)
         else
            call scheduler%create(class_name, optimizer, [option], stat=stat, errmsg=errmsg)
         end if
         call step_with(class_name, optimizer, scheduler)
      end subroutine follow
   end subroutine schedule

   !> Six steps, and what the model is then
   subroutine step_with(class_name, optimizer, scheduler)
      !> Of the scheduler
      character(*), intent(in) :: class_name
      !> Of the model
      type(torch_optimizer), intent(in) :: optimizer
      !> As it was created
      type(torch_scheduler), intent(in) :: scheduler

      integer :: i

      do i = 1, 6
         xd(1, i) = scheduler%last_lr()
         call optimizer%step()
         call scheduler%step(stat=stat, errmsg=errmsg)
         if (class_name == "ReduceLROnPlateau") call scheduler%step(1d0 + i, stat=stat, errmsg=errmsg)
      end do
      call optimizer%get("lr", xd(2, 1))
      call saw(class_name)
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw_near(class_name // ": forward")
   end subroutine step_with

   !> Of all weights: their mean, and one that forgets
   subroutine average()
      type(torch_averaged) :: averaged

      theme = "averages"
      call averaged%update(stat=stat, errmsg=errmsg)
      call saw("update: nothing created")
      call averaged%create(model, [torch_in("nothing", 1)], stat=stat, errmsg=errmsg)
      call saw("create: no such option")
      call averaged%create(model, [torch_in("decay", 1d0)], stat=stat, errmsg=errmsg)
      call saw("create: decay of one")
      call averaged%create(model, [torch_in("decay", "slow")], stat=stat, errmsg=errmsg)
      call saw("create: a text as decay")
      call averaged%create(model, stat=stat, errmsg=errmsg)
      call saw("create: mean")
      call swap_after_steps("mean")
      call averaged%create(model, [torch_in("decay", 0.75d0), torch_in("use_buffers", .true.)], stat=stat, &
         errmsg=errmsg)
      call saw("create: decay")
      call swap_after_steps("decay")
      call averaged%free()
      call averaged%update(stat=stat, errmsg=errmsg)
      call saw("update: freed")
      call averaged%free()

   contains

      subroutine swap_after_steps(name)
         character(*), intent(in) :: name

         integer :: i

         do i = 1, 3
            call model%train([torch_in(x)], [torch_in(cells(1:1, :))], loss, stat=stat, errmsg=errmsg)
            call saw("train: " // name // ", step " // achar(48 + i))
            call averaged%update(stat=stat, errmsg=errmsg)
         end do
         call saw("update: " // name)
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call saw("forward: " // name // ", weights of the model")
         call averaged%swap(stat=stat, errmsg=errmsg)
         call saw("swap: " // name)
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call saw("forward: " // name // ", averaged weights")
         call averaged%update(stat=stat, errmsg=errmsg)
         call saw("update: " // name // ", of averaged weights")
         call averaged%swap(stat=stat, errmsg=errmsg)
         call saw("swap: " // name // ", back")
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call saw("forward: " // name // ", weights again")
      end subroutine swap_after_steps
   end subroutine average
end module parts
