! SPDX-License-Identifier: MIT
!> The same problems through FTorch, by its public interface: that after release 1.1, which has no optimizers.
!>
!> Tensors are made once from the arrays and reused, as its documentation advises. FTorch keeps the index order of
!> Fortran; the layouts here make it see what the other paths see.
module bench_peer
   use, intrinsic :: iso_c_binding, only : c_int64_t
   use, intrinsic :: iso_fortran_env, only : int32, real32, real64
   use bench_field, only : field
   use bench_problem, only : problem
   use ftorch, only : torch_delete, torch_kCPU, torch_kFloat32, torch_kFloat64, torch_loss_mse, torch_model, &
      torch_model_forward, torch_model_load, torch_model_parameters, torch_optim, torch_optim_Adam, torch_optim_SGD, &
      torch_tensor, torch_tensor_backward, torch_tensor_from_array, torch_tensor_from_blob
   implicit none
   private

   public :: peer_model, peer_load, peer_call, peer_free

   character(*), parameter, public :: peer_paths = "ftorch"

   !> Parameters of the networks that are trained: three layers, each with weights and biases
   integer, parameter :: parameter_count = 6

   type :: peer_model
      type(torch_model) :: model
      type(torch_tensor), allocatable :: inputs(:)
      type(torch_tensor) :: outputs(1), target, loss, parameters(parameter_count)
      type(torch_optim) :: optimizer
      type(field) :: prediction
      real(real32), pointer, contiguous :: loss_value(:) => null()
      logical :: loaded = .false., trains = .false.
   end type peer_model

contains

   subroutine peer_load(self, path, problem_, output, layout, script, errmsg)
      type(peer_model), intent(inout) :: self
      type(problem), intent(in) :: problem_
      type(field), intent(in) :: output
      character(*), intent(in) :: path, layout, script
      character(:), allocatable, intent(out) :: errmsg

      integer :: i

      errmsg = ""
      self%trains = problem_%trains
      if (problem_%input_count == 0) then
         errmsg = "FTorch has no call without tensors"
         return
      end if
      allocate (self%inputs(problem_%input_count))
      do i = 1, size(self%inputs)
         call wrap(self%inputs(i), problem_%inputs(i), layout)
      end do
      call torch_model_load(self%model, problem_%model // ".pt", torch_kCPU, is_training=self%trains)
      if (self%trains) then
         call wrap(self%target, problem_%target, layout)
         ! The shape of the prediction is that of the target; forward replaces the tensor where gradients are wanted
         call problem_%target%spoiled_copy(self%prediction)
         call wrap(self%outputs(1), self%prediction, layout)
         call torch_model_parameters(self%model, self%parameters)
         allocate (self%loss_value(1))
         if (problem_%optimizer == "adam") call torch_optim_Adam(self%optimizer, self%parameters, &
            learning_rate=problem_%rate)
         if (problem_%optimizer == "sgd") call torch_optim_SGD(self%optimizer, self%parameters, &
            learning_rate=problem_%rate)
      else
         call wrap(self%outputs(1), output, layout)
      end if
      self%loaded = .true.
   end subroutine peer_load

   !> An array as a tensor of FTorch
   subroutine wrap(tensor, array, layout)
      type(torch_tensor), intent(inout) :: tensor
      type(field), intent(in) :: array
      character(*), intent(in) :: layout

      integer(c_int64_t) :: extents(array%rank)
      integer(int32) :: order(array%rank)
      integer :: i

      if (layout == "same") then
         extents = array%extents(:array%rank)
         order = [(i, i=1, array%rank)]
      else
         extents = array%extents(array%rank:1:-1)
         order = [(i, i=array%rank, 1, -1)]
      end if
      call torch_tensor_from_blob(tensor, array%address(), array%rank, extents, order, &
         merge(torch_kFloat32, torch_kFloat64, array%dtype == "float32"), torch_kCPU)
   end subroutine wrap

   subroutine peer_call(self, loss)
      type(peer_model), intent(inout) :: self
      real(real64), intent(inout) :: loss

      if (.not. self%trains) then
         call torch_model_forward(self%model, self%inputs, self%outputs)
         return
      end if
      call self%optimizer%zero_grad()
      call torch_model_forward(self%model, self%inputs, self%outputs, requires_grad=.true.)
      ! The loss of the last step holds that step's graph, and a new one would be added to it
      call torch_delete(self%loss)
      call torch_tensor_from_array(self%loss, self%loss_value, torch_kCPU)
      call torch_loss_mse(self%loss, self%outputs(1), self%target)
      call torch_tensor_backward(self%loss)
      call self%optimizer%step()
      loss = self%loss_value(1)
   end subroutine peer_call

   subroutine peer_free(self)
      type(peer_model), intent(inout) :: self

      if (.not. self%loaded) return
      if (self%trains) then
         call torch_delete(self%optimizer)
         call torch_delete(self%loss)
         call torch_delete(self%target)
         call torch_delete(self%parameters)
         deallocate (self%loss_value)
         call self%prediction%release()
      end if
      call torch_delete(self%outputs)
      call torch_delete(self%inputs)
      call torch_delete(self%model)
      deallocate (self%inputs)
      self%loaded = .false.
   end subroutine peer_free
end module bench_peer
