! SPDX-License-Identifier: MIT
!> The driver of our own paths: those of others are in drivers of their own, since libraries that come with a program
!> change what it costs to start.
module bench_peer
   use, intrinsic :: iso_fortran_env, only : real64
   use bench_field, only : field
   use bench_problem, only : problem
   implicit none
   private

   public :: peer_model, peer_load, peer_call, peer_free

   !> The paths of the library that this driver was built with
   character(*), parameter, public :: peer_paths = ""

   type :: peer_model
   end type peer_model

contains

   subroutine peer_load(self, path, problem_, output, layout, script, errmsg)
      type(peer_model), intent(inout) :: self
      type(problem), intent(in) :: problem_
      type(field), intent(in) :: output
      character(*), intent(in) :: path, layout, script
      character(:), allocatable, intent(out) :: errmsg

      errmsg = "there is no path " // path
   end subroutine peer_load

   subroutine peer_call(self, loss)
      type(peer_model), intent(inout) :: self
      real(real64), intent(inout) :: loss

      error stop "this driver has no path of another library"
   end subroutine peer_call

   subroutine peer_free(self)
      type(peer_model), intent(inout) :: self
   end subroutine peer_free
end module bench_peer
