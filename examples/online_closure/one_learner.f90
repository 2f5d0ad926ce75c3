! SPDX-License-Identifier: MIT
!> One script learns while the full model runs: the time of a sample, the model unchanged, and the skill.
!>
!>     one_learner SCRIPT.py [FOLDER]        for what the script writes
!>     one_learner SCRIPT.py --background    learn in another process
!>     one_learner FILE.pt                   test a saved network on the same later data
program one_learner
   use ftn_pytorch
   use lorenz96, only: dp, full_model, gather_stencils, stencil
   use statistics, only: seconds, skill
   implicit none

   integer, parameter :: nslow = 32, nfast = 32, per_sample = 50, steps = 1000, tests = 200
   !> When the test begins, in samples
   integer, parameter :: test_from = 1250
   real(dp), parameter :: dt = 1e-3_dp

   type(full_model) :: model, alone
   type(torch_pymodule) :: script
   type(torch_module) :: network
   character(4096) :: file, option
   logical :: is_script
   integer :: samples = 0

   call get_command_argument(1, file)
   call get_command_argument(2, option)
   if (file == "") error stop "usage: one_learner SCRIPT.py [FOLDER | --background], or one_learner FILE.pt"
   call ftn_pytorch_set_threads(1)
   call model%start(nslow, nfast, forcing=20.0_dp, spin_up=10.0_dp, dt=dt)
   alone = model
   is_script = index(file, ".py") > 0
   if (is_script) then
      if (option == "" .or. option == "--background") then
         call script%load(trim(file), dtype="float32", background=option /= "", config=[torch_in("steps", steps)])
      else
         call script%load(trim(file), dtype="float32", &
            config=[torch_in("steps", steps), torch_in("folder", trim(option))])
      end if
      call learn()
      if (script%has("export_samples")) call script%call("export_samples")
   else
      call network%load(trim(file), dtype="float32")
   end if
   call test()

contains

   subroutine learn()
      real(dp) :: columns(stencil, nslow), tendency(nslow), loss, learning, start
      logical :: completed

      completed = .false.
      do while (.not. completed)
         call gather_stencils(reshape(model%x, [nslow, 1]), columns)
         tendency = model%subgrid()
         completed = script%train([torch_in(columns)], [torch_in(tendency)], loss)
         call model%advance(per_sample, dt)
         samples = samples + 1
         ! The first calls load, compile and record
         if (samples == steps/2) start = seconds()
      end do
      learning = 1000*(seconds() - start)/(samples - steps/2)
      call alone%advance(per_sample*steps/2, dt)
      start = seconds()
      call alone%advance(per_sample*(samples - steps/2), dt)
      print "(a, f6.2)", "ms per sample, the model alone:    ", 1000*(seconds() - start)/(samples - steps/2), &
         "ms per sample, with learning:      ", learning
      if (any(alone%x /= model%x) .or. any(alone%y /= model%y)) error stop "learning has changed the model"
   end subroutine learn

   !> The share of the variance of the tendency that is explained on later data
   subroutine test()
      real(dp) :: columns(stencil, nslow), guess(nslow)
      type(skill) :: score
      integer :: i

      if (samples > test_from) error stop "learning took longer than expected"
      call model%advance((test_from - samples)*per_sample, dt)
      do i = 1, tests
         call gather_stencils(reshape(model%x, [nslow, 1]), columns)
         if (is_script) then
            call script%forward([torch_in(columns)], [torch_out(guess)])
         else
            call network%forward([torch_in(columns)], [torch_out(guess)])
         end if
         call score%add(guess, model%subgrid())
         call model%advance(per_sample, dt)
      end do
      print "(a, f6.2)", "R2 of the tendency on later data:  ", score%r2()
      if (.not. score%r2() > 0.85_dp) error stop "the network has not learnt"
   end subroutine test

end program one_learner
