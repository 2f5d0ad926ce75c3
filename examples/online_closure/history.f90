! SPDX-License-Identifier: MIT
!> A run of the full model from which networks learn, and how loss and skill change while it goes on.
module history
   use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
   use, intrinsic :: iso_fortran_env, only: output_unit
   use closures, only: closure_pointer, polynomial_closure
   use lorenz96, only: dp, full_model, gather_stencils, stencil
   use network_closure, only: network
   use settings, only: full_dt, full_steps, interval
   use statistics, only: skill
   implicit none
   private

   public :: run_history

   !> Samples of which scores are averaged
   integer, parameter :: window = nint(10/interval)

   type :: run_history
      !> End of each window
      real(dp), allocatable :: time(:)
      !> (closures, windows) and (networks, windows)
      real(dp), allocatable :: r2(:, :), loss(:, :)
      !> Of the closures in the window that is not over
      type(skill), allocatable, private :: scores(:)
      real(dp), allocatable, private :: loss_sum(:)
      integer, private :: losses = 0
   contains
      procedure :: begin
      procedure :: learn
      procedure :: test
      procedure, private :: score
      procedure, private :: close_window
   end type run_history

contains

   subroutine begin(self, closures, networks)
      class(run_history), intent(inout) :: self
      integer, intent(in) :: closures, networks

      allocate (self%time(0), self%r2(closures, 0), self%loss(networks, 0))
      allocate (self%scores(closures))
      allocate (self%loss_sum(networks), source=0.0_dp)
   end subroutine begin

   !> The full model runs and networks learn: for so many samples, or until they have taken all their steps
   subroutine learn(self, model, scored, nets, windows_per_line, samples, fit)
      class(run_history), intent(inout) :: self
      type(full_model), intent(inout) :: model
      !> May point to those that learn
      type(closure_pointer), intent(in) :: scored(:)
      type(network), intent(inout), target :: nets(:)
      !> Windows from one printed line to the next
      integer, intent(in) :: windows_per_line
      integer, intent(in), optional :: samples
      !> Learn too, if given
      type(polynomial_closure), intent(inout), target, optional :: fit(:)

      real(dp) :: columns(stencil, model%nslow), tendency(model%nslow), loss
      integer :: i, sample
      logical :: done(size(nets)), is_over

      sample = 0
      is_over = .false.
      do while (.not. is_over)
         sample = sample + 1
         tendency = model%subgrid()
         ! Predicted first, learned from after: what is scored here is always later than what was learned
         call self%score(model%x, tendency, scored)
         call gather_stencils(reshape(model%x, [model%nslow, 1]), columns)
         do i = 1, size(nets)
            done(i) = nets(i)%learn(columns, tendency, loss)
            self%loss_sum(i) = self%loss_sum(i) + loss
         end do
         self%losses = self%losses + 1
         if (present(fit)) then
            do i = 1, size(fit)
               call fit(i)%learn(columns, tendency)
            end do
         end if
         call model%advance(full_steps, full_dt)

         if (mod(sample, window) == 0) call self%close_window(model%time)
         is_over = all(done)
         if (present(samples)) is_over = sample == samples
         if (mod(sample, window*windows_per_line) == 0 .or. is_over) then
            associate (now => size(self%time))
               print "(f7.1, f5.0, i12, f9.3, 3x, *(f8.3))", model%time, model%forcing, nets(1)%steps_done(), &
                  self%loss(1, now), self%r2(:size(scored), now)
            end associate
            flush (output_unit)
         end if
      end do
   end subroutine learn

   !> The full model runs, nobody learns
   subroutine test(self, model, scored, samples, r2)
      class(run_history), intent(inout) :: self
      type(full_model), intent(inout) :: model
      type(closure_pointer), intent(in) :: scored(:)
      integer, intent(in) :: samples
      !> Over all of these samples
      real(dp), intent(out) :: r2(:)

      type(skill) :: total(size(scored))
      integer :: i, sample

      do sample = 1, samples
         call self%score(model%x, model%subgrid(), scored, total)
         call model%advance(full_steps, full_dt)
         if (mod(sample, window) == 0) call self%close_window(model%time)
      end do
      r2 = [(total(i)%r2(), i=1, size(scored))]
   end subroutine test

   subroutine score(self, x, tendency, scored, total)
      class(run_history), intent(inout) :: self
      !> Slow variables, and what the fast ones do to them
      real(dp), intent(in) :: x(:), tendency(:)
      type(closure_pointer), intent(in) :: scored(:)
      type(skill), intent(inout), optional :: total(:)

      real(dp) :: prediction(size(x), 1)
      integer :: i

      do i = 1, size(scored)
         call scored(i)%p%evaluate(reshape(x, [size(x), 1]), prediction)
         call self%scores(i)%add(prediction(:, 1), tendency)
         if (present(total)) call total(i)%add(prediction(:, 1), tendency)
      end do
   end subroutine score

   !> Append the averages since the window before, not a number where there is nothing to average, and begin a new one
   subroutine close_window(self, time)
      class(run_history), intent(inout) :: self
      real(dp), intent(in) :: time

      integer :: i

      self%time = [self%time, time]
      call append(self%r2, [(self%scores(i)%r2(), i=1, size(self%scores))])
      if (self%losses > 0) then
         call append(self%loss, self%loss_sum/self%losses)
      else
         call append(self%loss, [(ieee_value(time, ieee_quiet_nan), i=1, size(self%loss_sum))])
      end if
      self%scores = skill()
      self%loss_sum = 0
      self%losses = 0
   end subroutine close_window

   subroutine append(table, column)
      real(dp), allocatable, intent(inout) :: table(:, :)
      real(dp), intent(in) :: column(:)

      table = reshape([table, column], [size(table, 1), size(table, 2) + 1])
   end subroutine append

end module history
