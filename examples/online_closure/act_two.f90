! SPDX-License-Identifier: MIT
!> Second act, the reason for learning online: the forcing changes, and only what keeps learning keeps its skill.
module act_two
   use, intrinsic :: iso_fortran_env, only: output_unit
   use closures, only: closure_pointer, polynomial_closure
   use ftn_pytorch, only: torch_in
   use history, only: run_history
   use lorenz96, only: dp, full_model, gather_stencils, stencil
   use network_closure, only: network
   use picture, only: keep
   use settings, only: device, folder, interval, full_dt, full_steps, script, seeds
   use statistics, only: skill
   use verdicts, only: claim
   implicit none
   private

   public :: play_act_two

   integer, parameter :: nslow = 36, nfast = 10
   real(dp), parameter :: forcing_before = 10, forcing_after = 20
   !> Samples of learning before the step and after it, and of each test
   integer, parameter :: learned = nint(200/interval), tested = nint(50/interval)
   !> Samples of which scores are averaged, and windows from one printed line to the next
   integer, parameter :: window = nint(10/interval), windows_per_line = 2
   integer, parameter :: warm_up = nint(10/interval), steps_per_sample = 2

   ! Closures in the order in which their scores are kept
   integer, parameter :: learning = 1, frozen = 2, linear = 3, quartic = 4, quartic_all = 5

contains

   subroutine play_act_two()
      type(full_model) :: model
      type(network), target :: nets(learning:frozen)
      type(polynomial_closure), target :: fit(linear:quartic_all)
      type(closure_pointer) :: all(learning:quartic_all)
      type(run_history) :: past
      real(dp), dimension(learning:quartic_all) :: before, after
      integer :: i

      print "(a)", "", "Second act: K = 36, J = 10. The forcing steps from 10 to 20 while the model runs."
      call fit(linear)%create("linear in X(k)", [3], degree=1)
      call fit(quartic)%create("degree 4 in X(k)", [3], degree=4)
      call fit(quartic_all)%create("degree 4 in X(k-2..k+2)", [1, 2, 3, 4, 5], degree=4)
      call load_network(nets(learning), "network that keeps learning")
      do i = linear, quartic_all
         all(i)%p => fit(i)
      end do
      do i = learning, frozen
         all(i)%p => nets(i)
      end do

      call model%start(nslow, nfast, forcing_before, spin_up=20.0_dp, dt=full_dt)
      call past%begin(closures=size(all), networks=1)
      print "(a)", "   time    F   Adam step     loss   share of time   held-out R2", &
         "                                      in Python     learning  frozen  linear  degree 4  five inputs"
      call run_learning(model, all(:learning), nets(learning), past, fit)
      do i = linear, quartic_all
         call fit(i)%solve()
      end do
      ! The frozen network is the learning one as it is now: the same script again, with a state of its own
      call nets(learning)%save(folder//"/network_at_f10")
      call load_network(nets(frozen), "network frozen at F = 10")
      call nets(frozen)%restore(folder//"/network_at_f10")

      call run_test(model, all, past, before)
      model%forcing = forcing_after
      call run_learning(model, all, nets(learning), past)
      call run_test(model, all, past, after)

      print "(a)", "", "R2 on 50 time units right after learning, nobody learning any more"
      print "(t37, a)", "F = 10    F = 20"
      do i = learning, quartic_all
         print "(3x, a, f7.3, f10.3)", all(i)%p%name, before(i), after(i)
      end do
      print "(a)"
      call claim("second act: R2 of the learning network, 200 time units after the step", &
                 after(learning), 0.78_dp)
      call keep([torch_in("time_2", past%time), torch_in("loss_2", past%loss), torch_in("r2_2", past%r2), &
                 torch_in("step_2", (learned + tested)*interval)])
   end subroutine play_act_two

   !> Both networks are made alike, since one becomes a copy of the other
   subroutine load_network(net, name)
      type(network), intent(inout) :: net
      character(len=*), intent(in) :: name

      call net%load(name, script, device, &
         [torch_in("seed", seeds + 1), torch_in("steps", 2*learned*steps_per_sample), &
          torch_in("steps_per_call", steps_per_sample), torch_in("memory", 1000), torch_in("warm_up", warm_up*nslow)])
   end subroutine load_network

   !> The full model runs and one network learns; all closures given are scored, before the network learns from it
   subroutine run_learning(model, all, learner, past, fit)
      type(full_model), intent(inout) :: model
      type(closure_pointer), intent(in) :: all(:)
      type(network), intent(inout) :: learner
      type(run_history), intent(inout) :: past
      !> Learn too, if given
      type(polynomial_closure), intent(inout), optional :: fit(:)

      real(dp) :: columns(stencil, nslow), tendency(nslow), loss(1)
      integer :: i, sample
      logical :: done

      do sample = 1, learned
         tendency = model%subgrid()
         call score(model, all, past, tendency)
         call gather_stencils(reshape(model%x, [nslow, 1]), columns)
         done = learner%learn(columns, tendency, loss(1))
         call past%add_losses(loss)
         if (present(fit)) then
            do i = 1, size(fit)
               call fit(i)%learn(columns, tendency)
            end do
         end if
         call model%advance(full_steps, full_dt)
         if (mod(sample, window) == 0) call past%close_window(model%time)
         if (mod(sample, window*windows_per_line) == 0) then
            associate (now => size(past%time))
               print "(f7.1, f5.0, i12, f9.3, f12.3, 9x, *(f8.3))", model%time, model%forcing, learner%steps_done(), &
                  past%loss(1, now), learner%seconds/past%elapsed(), past%r2(:size(all), now)
            end associate
            flush (output_unit)
         end if
      end do
   end subroutine run_learning

   !> The full model runs, nobody learns
   subroutine run_test(model, all, past, r2)
      type(full_model), intent(inout) :: model
      type(closure_pointer), intent(in) :: all(:)
      type(run_history), intent(inout) :: past
      real(dp), intent(out) :: r2(:)

      type(skill) :: total(size(all))
      integer :: i, sample

      do sample = 1, tested
         call score(model, all, past, model%subgrid(), total)
         call model%advance(full_steps, full_dt)
         if (mod(sample, window) == 0) call past%close_window(model%time)
      end do
      r2 = [(total(i)%r2(), i=1, size(all))]
   end subroutine run_test

   subroutine score(model, all, past, tendency, total)
      type(full_model), intent(in) :: model
      type(closure_pointer), intent(in) :: all(:)
      type(run_history), intent(inout) :: past
      real(dp), intent(in) :: tendency(:)
      type(skill), intent(inout), optional :: total(:)

      real(dp) :: prediction(nslow, 1)
      integer :: i

      do i = 1, size(all)
         call all(i)%p%evaluate(reshape(model%x, [nslow, 1]), prediction)
         call past%window(i)%add(prediction(:, 1), tendency)
         if (present(total)) call total(i)%add(prediction(:, 1), tendency)
      end do
   end subroutine score

end module act_two
