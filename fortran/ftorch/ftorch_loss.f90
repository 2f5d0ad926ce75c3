! SPDX-License-Identifier: MIT
!> Losses of FTorch. They write into the tensor that is given, which has the graph of the loss from then on.
module ftorch_loss
   use, intrinsic :: iso_c_binding, only : c_int32_t
   use fpt_c, only : FPT_CROSS_ENTROPY, FPT_MSE_LOSS
   use fpt_ftorch, only : into, refuse
   use ftorch_tensor, only : have_read, torch_tensor
   use ftorch_types, only : torch_kMean, torch_kNone, torch_kSum
   implicit none
   private

   public :: torch_loss_mse, torch_loss_cross_entropy, torch_kNone, torch_kMean, torch_kSum

contains

   !> Mean squared error
   subroutine torch_loss_mse(loss_tensor, input_tensor, target_tensor, reduction_type)
      !> Receives the loss
      type(torch_tensor), intent(inout) :: loss_tensor
      !> What a model computed, and what it should have computed
      type(torch_tensor), intent(in) :: input_tensor, target_tensor
      !> torch_kMean (default), torch_kSum, or torch_kNone for the losses of all elements
      integer, optional, intent(in) :: reduction_type

      call compute(FPT_MSE_LOSS, loss_tensor, input_tensor, target_tensor, reduction_type)
   end subroutine torch_loss_mse

   !> Cross entropy of classes, whose axis is the first one, or the second one of a batch
   subroutine torch_loss_cross_entropy(loss_tensor, input_tensor, target_tensor, reduction_type)
      !> Receives the loss
      type(torch_tensor), intent(inout) :: loss_tensor
      !> Values of the classes, and the right classes: their numbers from 0, or their probabilities
      type(torch_tensor), intent(in) :: input_tensor, target_tensor
      !> torch_kMean (default), torch_kSum, or torch_kNone for the losses of all elements
      integer, optional, intent(in) :: reduction_type

      call compute(FPT_CROSS_ENTROPY, loss_tensor, input_tensor, target_tensor, reduction_type)
   end subroutine torch_loss_cross_entropy

   !> A loss of torch.nn.functional
   subroutine compute(what, loss_tensor, input_tensor, target_tensor, reduction_type)
      !> FPT_MSE_LOSS, ...
      integer(c_int32_t), intent(in) :: what
      !> Receives the loss
      type(torch_tensor), intent(inout) :: loss_tensor
      !> What a model computed, and what it should have computed
      type(torch_tensor), intent(in) :: input_tensor, target_tensor
      !> What is done with the losses of all elements
      integer, optional, intent(in) :: reduction_type

      integer :: reduction

      reduction = torch_kMean
      if (present(reduction_type)) reduction = reduction_type
      if (reduction < torch_kNone .or. reduction > torch_kSum) then
         call refuse("there is no such reduction: use torch_kMean, torch_kSum or torch_kNone")
      end if
      call into(loss_tensor%t, what, input_tensor%t, target_tensor%t, int(reduction, c_int32_t))
      call have_read(input_tensor)
      call have_read(target_tensor)
   end subroutine compute
end module ftorch_loss
