! SPDX-License-Identifier: MIT
!> Carts, each with a pole on a hinge, side by side (Barto, Sutton, Anderson 1983), with the constants of CartPole-v1.
module cart_poles
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, real32, real64
   implicit none
   private

   public :: carts

   !> Steps after which an episode is cut off
   integer, parameter, public :: longest = 500

   real(real64), parameter :: gravity = 9.8_real64                  ! m/s2
   real(real64), parameter :: mass_of_cart = 1, mass_of_pole = 0.1_real64   ! kg
   real(real64), parameter :: half_length = 0.5_real64              ! of the pole, m
   real(real64), parameter :: push = 10                             ! N
   real(real64), parameter :: time_step = 0.02_real64               ! s
   real(real64), parameter :: end_of_track = 2.4_real64             ! m
   real(real64), parameter :: largest_angle = 12*acos(-1.0_real64)/180

   type :: carts
      !> Position (m), velocity (m/s), angle from upright (rad), angular velocity (rad/s); of each cart
      real(real32), allocatable :: state(:, :)
      !> Of the episode that goes on
      integer, allocatable :: steps(:)
   contains
      procedure :: advance
      procedure, private :: begin
   end type carts

   interface carts
      module procedure new_carts
   end interface carts

contains

   function new_carts(n) result(self)
      integer, intent(in) :: n
      type(carts) :: self

      integer :: i

      allocate (self%state(4, n), self%steps(n))
      do i = 1, n
         call self%begin(i)
      end do
   end function new_carts

   !> An episode of one cart: nearly upright, nearly at rest
   subroutine begin(self, i)
      class(carts), intent(inout) :: self
      integer, intent(in) :: i

      call random_number(self%state(:, i))
      self%state(:, i) = 0.1_real32*self%state(:, i) - 0.05_real32
      self%steps(i) = 0
   end subroutine begin

   !> One step of all carts. Where an episode ends, the next one begins.
   subroutine advance(self, action, next, reward, terminated, truncated)
      class(carts), intent(inout) :: self
      !> 0 pushes to the left, 1 to the right
      integer(int32), intent(in) :: action(:)
      !> States after this step, before the next episode begins
      real(real32), intent(out) :: next(:, :)
      !> 1 for each step
      real(real32), intent(out) :: reward(:)
      !> The pole has fallen, or the cart has left the track
      logical(c_bool), intent(out) :: terminated(:)
      !> The episode has lasted for the longest time
      logical(c_bool), intent(out) :: truncated(:)

      integer :: i

      do i = 1, size(action)
         next(:, i) = after(self%state(:, i), merge(push, -push, action(i) == 1))
         self%steps(i) = self%steps(i) + 1
         reward(i) = 1
         terminated(i) = abs(next(1, i)) > end_of_track .or. abs(next(3, i)) > largest_angle
         truncated(i) = self%steps(i) >= longest .and. .not. terminated(i)
         self%state(:, i) = next(:, i)
         if (terminated(i) .or. truncated(i)) call self%begin(i)
      end do
   end subroutine advance

   !> The state of a cart one step later, by Euler's method
   pure function after(state, force) result(next)
      real(real32), intent(in) :: state(4)
      real(real64), intent(in) :: force
      real(real32) :: next(4)

      real(real64), parameter :: mass = mass_of_cart + mass_of_pole, moment = mass_of_pole*half_length
      real(real64) :: s(4), drive, angular, linear

      s = state
      drive = (force + moment*s(4)**2*sin(s(3)))/mass
      angular = (gravity*sin(s(3)) - cos(s(3))*drive)/(half_length*(4.0_real64/3 - mass_of_pole*cos(s(3))**2/mass))
      linear = drive - moment*angular*cos(s(3))/mass
      next = real(s + time_step*[s(2), linear, s(4), angular], real32)
   end function after
end module cart_poles
