! SPDX-License-Identifier: MIT
!> The solver as a procedure that the script calls, with its adjoint: fields of several samples at once.
module solver_steps
   use, intrinsic :: iso_fortran_env, only : real64
   use burgers, only : step, step_adjoint
   use ftn_pytorch
   implicit none
   private

   public :: solver, solver_adjoint, time_step

   !> Length of a step on the coarse grid
   real(real64), parameter :: time_step = 0.04_real64

contains

   !> outputs(1) = fields (cells, samples) of inputs(1) a step later
   subroutine solver(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: u(:, :), later(:, :)
      integer :: sample

      call inputs(1)%to_array(u, stat)
      if (stat /= FTN_PYTORCH_OK) return
      call outputs(1)%empty(shape(u), dtype="float64")
      call outputs(1)%to_array(later)
      do sample = 1, size(u, 2)
         later(:, sample) = step(u(:, sample), time_step)
      end do
   end subroutine solver

   !> outputs(1) = gradient with respect to the fields, for the gradient inputs(2) with respect to what solver made
   subroutine solver_adjoint(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: u(:, :), later(:, :), gradient(:, :)
      integer :: sample

      call inputs(1)%to_array(u, stat)
      if (stat /= FTN_PYTORCH_OK) return
      call inputs(2)%to_array(later)
      call outputs(1)%empty(shape(u), dtype="float64")
      call outputs(1)%to_array(gradient)
      do sample = 1, size(u, 2)
         gradient(:, sample) = step_adjoint(u(:, sample), later(:, sample), time_step)
      end do
   end subroutine solver_adjoint
end module solver_steps
