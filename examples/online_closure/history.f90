! SPDX-License-Identifier: MIT
!> How loss and skill change while a run goes on: averages over windows of time.
module history
   use, intrinsic :: ieee_arithmetic, only: ieee_value, ieee_quiet_nan
   use lorenz96, only: dp
   use statistics, only: seconds, skill
   implicit none
   private

   public :: run_history

   type :: run_history
      !> End of each window
      real(dp), allocatable :: time(:)
      !> (closures, windows) and (networks, windows)
      real(dp), allocatable :: r2(:, :), loss(:, :)
      !> Of the closures, to which predictions of the window are added
      type(skill), allocatable :: window(:)
      real(dp), allocatable, private :: loss_sum(:)
      integer, private :: losses = 0
      real(dp), private :: start = 0
   contains
      procedure :: begin
      procedure :: add_losses
      procedure :: close_window
      procedure :: elapsed
   end type run_history

contains

   subroutine begin(self, closures, networks)
      class(run_history), intent(inout) :: self
      integer, intent(in) :: closures, networks

      allocate (self%time(0), self%r2(closures, 0), self%loss(networks, 0))
      allocate (self%window(closures))
      allocate (self%loss_sum(networks), source=0.0_dp)
      self%start = seconds()
   end subroutine begin

   subroutine add_losses(self, loss)
      class(run_history), intent(inout) :: self
      !> One of each network
      real(dp), intent(in) :: loss(:)

      self%loss_sum = self%loss_sum + loss
      self%losses = self%losses + 1
   end subroutine add_losses

   !> Append the averages since the window before, not a number where there is nothing to average, and begin a new one
   subroutine close_window(self, time)
      class(run_history), intent(inout) :: self
      real(dp), intent(in) :: time

      integer :: i

      self%time = [self%time, time]
      call append(self%r2, [(self%window(i)%r2(), i=1, size(self%window))])
      if (self%losses > 0) then
         call append(self%loss, self%loss_sum/self%losses)
      else
         call append(self%loss, [(ieee_value(time, ieee_quiet_nan), i=1, size(self%loss_sum))])
      end if
      self%window = skill()
      self%loss_sum = 0
      self%losses = 0
   end subroutine close_window

   subroutine append(table, column)
      real(dp), allocatable, intent(inout) :: table(:, :)
      real(dp), intent(in) :: column(:)

      table = reshape([table, column], [size(table, 1), size(table, 2) + 1])
   end subroutine append

   !> Wall time since the beginning, in seconds
   real(dp) function elapsed(self)
      class(run_history), intent(in) :: self

      elapsed = seconds() - self%start
   end function elapsed

end module history
