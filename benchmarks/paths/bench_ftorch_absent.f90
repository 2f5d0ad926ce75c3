! SPDX-License-Identifier: MIT
!> In place of bench_ftorch.f90 where CMake has not found FTorch.
module bench_ftorch
   use, intrinsic :: iso_fortran_env, only : real64
   use bench_field, only : field
   use bench_problem, only : problem
   implicit none
   private

   public :: ftorch_model, ftorch_load, ftorch_call, ftorch_free

   type :: ftorch_model
   end type ftorch_model

contains

   subroutine ftorch_load(self, problem_, output, layout, errmsg)
      type(ftorch_model), intent(inout) :: self
      type(problem), intent(in) :: problem_
      type(field), intent(in) :: output
      character(*), intent(in) :: layout
      character(:), allocatable, intent(out) :: errmsg

      errmsg = "CMake did not find FTorch when the benchmark was built"
   end subroutine ftorch_load

   subroutine ftorch_call(self, loss)
      type(ftorch_model), intent(inout) :: self
      real(real64), intent(inout) :: loss

      error stop "there is no FTorch"
   end subroutine ftorch_call

   subroutine ftorch_free(self)
      type(ftorch_model), intent(inout) :: self
   end subroutine ftorch_free
end module bench_ftorch
