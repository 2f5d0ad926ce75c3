! SPDX-License-Identifier: MIT
!> Second act, the reason for learning online: the forcing changes, and only what keeps learning keeps its skill.
module act_two
   use closures, only: closure_pointer, polynomial_closure
   use ftn_pytorch, only: torch_in
   use history, only: run_history
   use lorenz96, only: dp, full_model
   use network_closure, only: network
   use picture, only: keep
   use settings, only: device, folder, full_dt, interval, script, seeds
   use verdicts, only: claim
   implicit none
   private

   public :: play_act_two

   integer, parameter :: nslow = 36, nfast = 10
   real(dp), parameter :: forcing_before = 10, forcing_after = 20
   !> Samples of learning before the step and after it, and of each test
   integer, parameter :: learned = nint(200/interval), tested = nint(50/interval)
   integer, parameter :: warm_up = nint(10/interval), steps_per_sample = 2, windows_per_line = 2

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
      print "(a)", "   time    F   Adam step     loss   held-out R2", &
         "                                      learning  frozen  linear  degree 4  five inputs"
      call past%learn(model, all(:learning), nets(:learning), windows_per_line, learned, fit)
      do i = linear, quartic_all
         call fit(i)%solve()
      end do
      ! The frozen network is the learning one as it is now: the same script again, with a state of its own
      call nets(learning)%save(folder//"/network_at_f10")
      call load_network(nets(frozen), "network frozen at F = 10")
      call nets(frozen)%restore(folder//"/network_at_f10")

      call past%test(model, all, tested, before)
      model%forcing = forcing_after
      call past%learn(model, all, nets(:learning), windows_per_line, learned)
      call past%test(model, all, tested, after)

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

end module act_two
