! SPDX-License-Identifier: MIT
!> Schedulers of optimizers on the direct path: the rates of torch to the last bit, without Python.
!>
!> With an argument, Python takes over in the middle, and goes on as if it had done all of it.
program test_direct_schedules
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use check, only : expect, expect_status, finish, is_mapped
   use ftn_pytorch
   implicit none

   integer, parameter :: never = -1
   logical :: has_python
   integer :: warnings = 0, stat
   character(:), allocatable :: errmsg

   has_python = command_argument_count() > 0
   call ftn_pytorch_on_warning(count_warning)
   call rates_are_those_of_torch()
   call scheduler_keeps_its_optimizer()
   call order_of_steps_is_told()
   if (has_python) then
      call python_goes_on_with_all_schedulers("SGD")
      call python_goes_on_with_all_schedulers("AdamW")
      call state_is_saved_and_restored()
      call others_are_left_to_python()
   else
      call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   end if
   call finish()

contains

   subroutine count_warning(text)
      character(*), intent(in) :: text

      if (index(text, "StepLR came before any step of its optimizer") > 0) warnings = warnings + 1
   end subroutine count_warning

   !> An optimizer of one number, which has a gradient
   subroutine prepare(optimizer, class_name, weight, rate)
      type(torch_optimizer), intent(inout) :: optimizer
      character(*), intent(in) :: class_name
      type(torch_tensor), intent(inout) :: weight
      real(real64), intent(in) :: rate

      type(torch_tensor) :: loss

      call weight%ones([1], dtype="float64", requires_grad=.true.)
      loss = torch_sum(weight*3d0)
      call loss%backward()
      call optimizer%create(class_name, [weight], [torch_in("lr", rate)])
   end subroutine prepare

   !> What only Python can do
   subroutine hand_over(optimizer)
      type(torch_optimizer), intent(in) :: optimizer

      call optimizer%clip_grad_norm(1d30)
   end subroutine hand_over

   !> All cases of scripts/schedules.py
   subroutine rates_are_those_of_torch()
      character(4096) :: line
      character(32) :: word, name, class_name
      type(torch_arg) :: options(3)
      integer, target :: row(8)
      real(real64) :: first, number, changes(64)
      real(real64), allocatable :: rates(:)
      integer :: unit, status, noptions, step, n, cases

      cases = 0
      noptions = 0
      open (newunit=unit, file="direct_schedules.txt", action="read", status="old")
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         read (line, *) word
         select case (word)
         case ("class")
            read (line, *) word, class_name, first
            noptions = 0
            changes = 0
         case ("integer")
            read (line, *) word, name, n
            noptions = noptions + 1
            options(noptions) = torch_in(trim(name), n)
         case ("real")
            read (line, *) word, name, number
            noptions = noptions + 1
            options(noptions) = torch_in(trim(name), number)
         case ("row")
            read (line, *) word, name, n
            read (line, *) word, name, n, row(:n)
            noptions = noptions + 1
            options(noptions) = torch_in(trim(name), row(:n))
         case ("set")
            read (line, *) word, step, number
            changes(step) = number
         case ("rates")
            read (line, *) word, n
            allocate (rates(0:n))
            read (line, *) word, n, rates
            call follow(trim(class_name), options(:noptions), first, changes, rates, never)
            if (has_python) call follow(trim(class_name), options(:noptions), first, changes, rates, 10)
            deallocate (rates)
            cases = cases + 1
         end select
      end do
      close (unit)
      call expect(cases > 10, "there are cases")
   end subroutine rates_are_those_of_torch

   !> @param handed_over  the step before which Python takes over
   subroutine follow(class_name, options, first, changes, rates, handed_over)
      character(*), intent(in) :: class_name
      type(torch_arg), intent(in) :: options(:)
      real(real64), intent(in) :: first, changes(:), rates(0:)
      integer, intent(in) :: handed_over

      type(torch_arg), allocatable :: given(:)
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: weight
      real(real64) :: rate, wanted, sum_of_rates
      real(real64), target :: trained(1)
      logical :: right
      integer :: step

      call prepare(optimizer, "SGD", weight, first)
      allocate (given(size(options)), source=options)
      call scheduler%create(class_name, optimizer, given)
      right = same(scheduler%last_lr(), rates(0))
      sum_of_rates = 0
      do step = 1, ubound(rates, 1)
         if (step == handed_over) call hand_over(optimizer)
         call optimizer%get("lr", rate)
         sum_of_rates = sum_of_rates + rate
         call optimizer%step()
         wanted = rates(step)
         if (changes(step) > 0) call optimizer%set("lr", changes(step))
         call scheduler%step()
         call optimizer%get("lr", rate)
         right = right .and. same(scheduler%last_lr(1), wanted) .and. same(rate, wanted)
      end do
      call expect(right, class_name // ": the rates of torch")
      call weight%copy_to(torch_out(trained))
      call expect(abs(trained(1) - (1 - 3*sum_of_rates)) < 1d-12*(1 + sum_of_rates), class_name // ": steps use them")
   end subroutine follow

   pure logical function same(a, b)
      real(real64), intent(in) :: a, b

      same = transfer(a, 0_int64) == transfer(b, 0_int64)
   end function same

   subroutine scheduler_keeps_its_optimizer()
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: weight
      integer :: step

      call prepare(optimizer, "SGD", weight, 1d0)
      call scheduler%create("ExponentialLR", optimizer, [torch_in("gamma", 0.5d0)])
      call optimizer%step()
      call optimizer%free()
      do step = 1, 3
         call scheduler%step()
      end do
      call expect(same(scheduler%last_lr(), 0.125d0), "a scheduler goes on without the variable of its optimizer")
      if (.not. has_python) return
      call scheduler%save("direct_schedule_alone.pt")
      call scheduler%step()
      call expect(same(scheduler%last_lr(), 0.0625d0), "also in Python")
   end subroutine scheduler_keeps_its_optimizer

   subroutine order_of_steps_is_told()
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: weight
      integer :: i

      call expect(warnings == 0, "the right order is not warned of")
      do i = 1, 2
         call prepare(optimizer, "SGD", weight, 1d0)
         call optimizer%step()  ! does not count: nothing is scheduled yet
         call scheduler%create("StepLR", optimizer, [torch_in("step_size", 2)])
         call scheduler%step()
         call scheduler%step()
      end do
      call expect(warnings == 1, "the wrong order is warned of, once")
      call expect(same(scheduler%last_lr(), 1d0*0.1d0), "and computed as it is")
   end subroutine order_of_steps_is_told

   !> The same training, handed over at the beginning and in the middle
   subroutine python_goes_on_with_all_schedulers(class_name)
      character(*), intent(in) :: class_name

      integer, parameter :: steps = 12, middle = 7
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: warm_up, decay, short_lived
      type(torch_tensor) :: weight, more, loss
      real(real64) :: seen(4, steps, 2), settings(3, 2)
      real(real64), target :: values(1)
      real(real64) :: rate
      integer :: run, step

      do run = 1, 2
         call prepare(optimizer, class_name, weight, 0.1d0)
         if (run == 1) call hand_over(optimizer)
         call optimizer%set("lr", 0.3d0)
         call warm_up%create("LinearLR", optimizer, [torch_in("start_factor", 0.2d0), torch_in("total_iters", 5)])
         call short_lived%create("StepLR", optimizer, [torch_in("step_size", 2)])
         call decay%create("CosineAnnealingLR", optimizer, [torch_in("T_max", 4), torch_in("eta_min", -0.01d0)])
         do step = 1, steps
            if (run == 2 .and. step == middle) call hand_over(optimizer)
            if (step == 3) call short_lived%free()
            loss = torch_sum(weight*weight)
            call optimizer%zero_grad()
            call loss%backward()
            call optimizer%step()
            call warm_up%step()
            if (step == 3) call optimizer%set("lr", 0.25d0)
            if (step < 3) call short_lived%step()
            if (mod(step, 2) == 1) call decay%step()
            call optimizer%get("lr", rate)
            call weight%copy_to(torch_out(values))
            seen(:, step, run) = [warm_up%last_lr(), decay%last_lr(), rate, values(1)]
         end do
         call optimizer%get("initial_lr", settings(1, run))
         call more%ones([1], dtype="float64", requires_grad=.true.)
         call optimizer%add_group([more])
         call optimizer%get("lr", settings(2, run), group=2)
         call optimizer%get("weight_decay", settings(3, run), group=2)
      end do
      call expect(all(same_all(seen(:, :, 1), seen(:, :, 2))), class_name // ": Python goes on with rates and steps")
      call expect(all(same_all(settings(:, 1), settings(:, 2))), class_name // ": and with first settings")
      call expect(same(settings(1, 1), 0.3d0) .and. same(settings(2, 1), 0.1d0), class_name // ": which are those")
   end subroutine python_goes_on_with_all_schedulers

   impure elemental logical function same_all(a, b)
      real(real64), intent(in) :: a, b

      same_all = same(a, b)
   end function same_all

   subroutine state_is_saved_and_restored()
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: weight
      real(real64) :: wanted(6), found(6)
      integer :: step

      call prepare(optimizer, "Adam", weight, 0.1d0)
      call scheduler%create("CosineAnnealingLR", optimizer, [torch_in("T_max", 9)])
      do step = 1, 5
         call optimizer%step()
         call scheduler%step()
      end do
      call optimizer%save("direct_schedule.pt")
      call go_on(optimizer, scheduler, wanted)
      call prepare(optimizer, "Adam", weight, 0.5d0)
      call scheduler%create("CosineAnnealingLR", optimizer, [torch_in("T_max", 9)])
      call optimizer%restore("direct_schedule.pt")
      call go_on(optimizer, scheduler, found)
      call expect(all(same_all(found, wanted)), "a restart goes on with the rates")
   end subroutine state_is_saved_and_restored

   subroutine go_on(optimizer, scheduler, rates)
      type(torch_optimizer), intent(in) :: optimizer
      type(torch_scheduler), intent(in) :: scheduler
      real(real64), intent(out) :: rates(:)

      integer :: step

      do step = 1, size(rates)
         rates(step) = scheduler%last_lr()
         call optimizer%step()
         call scheduler%step()
      end do
   end subroutine go_on

   !> With its results, and its texts
   subroutine others_are_left_to_python()
      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler, parts(2), whole
      type(torch_tensor) :: weight
      integer, target :: milestones(1)
      integer :: step

      call prepare(optimizer, "SGD", weight, 1d0)
      call refused("StepLR", [torch_in("step_sise", 2)], FTN_PYTORCH_ERR_SIGNATURE, "step_size")
      call refused("StepLR", [torch_in("gamma", 0.5d0)], FTN_PYTORCH_ERR_SIGNATURE, "needs the option 'step_size'")
      call refused("LinearLR", [torch_in("start_factor", 2d0)], FTN_PYTORCH_ERR_ARGUMENT, "less or equal to 1")
      call refused("StepLRs", [torch_in("step_size", 2)], FTN_PYTORCH_ERR_ARGUMENT, "did you mean 'StepLR'?")

      call scheduler%create("ConstantLR", optimizer, [torch_in("factor", 0.5d0)])
      call optimizer%step()
      call scheduler%step()
      call expect(same(scheduler%last_lr(), 0.5d0), "a class that is not known here")

      call prepare(optimizer, "SGD", weight, 1d0)
      call parts(1)%create("LinearLR", optimizer, [torch_in("start_factor", 0.5d0), torch_in("total_iters", 2)])
      call parts(2)%create("ExponentialLR", optimizer, [torch_in("gamma", 0.5d0)])
      milestones = 3
      call whole%create("SequentialLR", optimizer, parts, [torch_in("milestones", milestones)])
      do step = 1, 4
         call optimizer%step()
         call whole%step()
      end do
      call expect(same(whole%last_lr(), 0.5d0), "schedulers that are known here, in one that is not")
      call whole%step(1d0, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "it takes no metric")

      call prepare(optimizer, "SGD", weight, 1d0)
      call scheduler%create("StepLR", optimizer, [torch_in("step_size", 2)])
      step = int(scheduler%last_lr(group=2, stat=stat, errmsg=errmsg))
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a group that there is not", errmsg, "there is no group 2")
   end subroutine others_are_left_to_python

   subroutine refused(class_name, options, status, part)
      character(*), intent(in) :: class_name, part
      type(torch_arg), intent(in) :: options(:)
      integer, intent(in) :: status

      type(torch_optimizer) :: optimizer
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: weight
      type(torch_arg), allocatable :: given(:)

      call prepare(optimizer, "SGD", weight, 1d0)
      allocate (given(size(options)), source=options)
      call scheduler%create(class_name, optimizer, given, stat=stat, errmsg=errmsg)
      call expect_status(stat, status, class_name, errmsg, part)
   end subroutine refused
end program test_direct_schedules
