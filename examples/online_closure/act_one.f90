! SPDX-License-Identifier: MIT
!> First act: networks learn the closure of Wilks' (2005) system while it runs, and then take the fast variables' place.
module act_one
   use ftn_pytorch, only: torch_in
   use closures, only: closure_pointer, polynomial_closure
   use comparison, only: compare_forecasts, print_scores, samples_needed
   use history, only: run_history
   use lorenz96, only: dp, full_model
   use network_closure, only: network
   use picture, only: keep
   use settings, only: device, folder, full_dt, full_steps, script, seeds, steps
   use statistics, only: skill
   use verdicts, only: claim
   implicit none
   private

   public :: play_act_one

   integer, parameter :: nslow = 8, nfast = 32
   real(dp), parameter :: forcing = 20
   !> Samples that networks collect before their first step, and samples between training and test
   integer, parameter :: warm_up = 200, gap = 200
   !> Samples that are evaluated at a time in the test, and shown in the picture
   integer, parameter :: chunk = 2000, shown = 20000

   integer, parameter :: linear = 1, quartic = 2, linear_all = 3, quartic_all = 4, fits = 4

contains

   subroutine play_act_one()
      type(full_model) :: model
      type(polynomial_closure), target :: fit(fits)
      type(network), allocatable, target :: nets(:)
      type(closure_pointer), allocatable :: all(:)
      type(run_history) :: past
      real(dp), allocatable :: test_x(:, :), test_u(:, :), r2(:), valid(:, :)
      integer :: i

      print "(a)", "", "First act: K = 8, J = 32, F = 20. Networks learn while the full model runs."
      allocate (nets(seeds), all(fits + seeds))
      call fit(linear)%create("linear in X(k)", [3], degree=1)
      call fit(quartic)%create("degree 4 in X(k)", [3], degree=4)
      call fit(linear_all)%create("linear in X(k-2..k+2)", [1, 2, 3, 4, 5], degree=1)
      call fit(quartic_all)%create("degree 4 in X(k-2..k+2)", [1, 2, 3, 4, 5], degree=4)
      do i = 1, fits
         all(i)%p => fit(i)
      end do
      do i = 1, size(nets)
         call nets(i)%load("network", script, device, &
            [torch_in("seed", i), torch_in("steps", steps), torch_in("warm_up", warm_up*nslow)])
         all(fits + i)%p => nets(i)
      end do

      call model%start(nslow, nfast, forcing, spin_up=20.0_dp, dt=full_dt)
      print "(a)", "   time    F   Adam step     loss   held-out R2 of each seed"
      call past%begin(closures=size(nets), networks=size(nets))
      call past%learn(model, all(fits + 1:), nets, windows_per_line=5, fit=fit)
      do i = 1, fits
         call fit(i)%solve()
      end do
      call keep([torch_in("time_1", past%time), torch_in("loss_1", past%loss), torch_in("r2_1", past%r2)])
      call nets(1)%save(folder//"/network")

      call model%advance(gap*full_steps, full_dt)
      call test_run(model, all, test_x, test_u, r2)
      call compare_forecasts(all, fits, forcing, test_x, valid)
      call print_scores(all, fits, r2, valid)

      print "(a)"
      call claim("Adam steps of each network while the full model ran", &
                 real(minval([(nets(i)%steps_done(), i=1, size(nets))]), dp), 8000.0_dp)
      associate (worst => minval(r2(fits + 1:)))
         call claim("first act: R2 of the network on later data, worst seed", worst, 0.89_dp)
         call claim("... above a linear fit, the better of the two", &
                    worst - max(r2(linear), r2(linear_all)), 0.08_dp)
         call claim("... above a fit of degree 4, the better of the two", &
                    worst - max(r2(quartic), r2(quartic_all)), 0.02_dp)
         call claim("mean valid time of forecasts, relative to the linear closure", &
                    sum(valid(:, fits + 1:))/size(nets)/sum(valid(:, linear)), 1.3_dp)
         call claim("... relative to the best polynomial", &
                    sum(valid(:, fits + 1:))/size(nets)/maxval(sum(valid(:, :fits), dim=1)), 1.03_dp)
      end associate
   end subroutine play_act_one

   !> The full model goes on, nobody learns any more: R2 of every closure on what none of them has seen
   subroutine test_run(model, all, x, u, r2)
      type(full_model), intent(inout) :: model
      type(closure_pointer), intent(in) :: all(:)
      !> Slow variables and sub-grid tendencies, (nslow, samples_needed)
      real(dp), allocatable, intent(out) :: x(:, :), u(:, :)
      real(dp), allocatable, intent(out) :: r2(:)

      real(dp), allocatable :: prediction(:, :), polynomial(:, :), line(:, :), curves(:, :, :)
      type(skill) :: score
      integer :: i, sample, first, last

      allocate (x(nslow, samples_needed), u(nslow, samples_needed), prediction(nslow, samples_needed), r2(size(all)))
      do sample = 1, samples_needed
         x(:, sample) = model%x
         u(:, sample) = model%subgrid()
         call model%advance(full_steps, full_dt)
      end do
      do i = 1, size(all)
         score = skill()
         do first = 1, samples_needed, chunk
            last = min(first + chunk - 1, samples_needed)
            call all(i)%p%evaluate(x(:, first:last), prediction(:, first:last))
            call score%add(reshape(prediction(:, first:last), [nslow*(last - first + 1)]), &
                           reshape(u(:, first:last), [nslow*(last - first + 1)]))
         end do
         r2(i) = score%r2()
         if (i == quartic_all) polynomial = prediction(:, :shown)
      end do

      ! The fits in X(k) alone are curves; what sees the neighbours too is a cloud, the network being the last of `all`
      allocate (line(nslow, 20), curves(nslow, 20, 2))
      line = reshape([(-14 + 31*(i - 1)/159.0_dp, i=1, size(line))], shape(line))
      call all(linear)%p%evaluate(line, curves(:, :, 1))
      call all(quartic)%p%evaluate(line, curves(:, :, 2))
      call keep([torch_in("test_x", x(:, :shown)), torch_in("test_u", u(:, :shown)), &
                 torch_in("test_network", prediction(:, :shown)), torch_in("test_polynomial", polynomial), &
                 torch_in("curve_x", line), torch_in("curves", curves), torch_in("r2", r2)])
   end subroutine test_run

end module act_one
