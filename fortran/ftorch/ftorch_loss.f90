! SPDX-License-Identifier: MIT
!> Losses of FTorch. They write into the tensor that is given, which has the graph of the loss from then on.
module ftorch_loss
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

      call compute("fortran.assign_loss.mse_loss", loss_tensor, input_tensor, target_tensor, reduction_type)
   end subroutine torch_loss_mse

   !> Cross entropy of classes, whose axis is the first one, or the second one of a batch
   subroutine torch_loss_cross_entropy(loss_tensor, input_tensor, target_tensor, reduction_type)
      !> Receives the loss
      type(torch_tensor), intent(inout) :: loss_tensor
      !> Values of the classes, and the right classes: their numbers from 0, or their probabilities
      type(torch_tensor), intent(in) :: input_tensor, target_tensor
      !> torch_kMean (default), torch_kSum, or torch_kNone for the losses of all elements
      integer, optional, intent(in) :: reduction_type

      call compute("fortran.assign_loss.cross_entropy", loss_tensor, input_tensor, target_tensor, reduction_type)
   end subroutine torch_loss_cross_entropy

   !> A loss of torch.nn.functional
   subroutine compute(name, loss_tensor, input_tensor, target_tensor, reduction_type)
      !> Name of the function that assigns it
      character(*), intent(in) :: name
      !> Receives the loss
      type(torch_tensor), intent(inout) :: loss_tensor
      !> What a model computed, and what it should have computed
      type(torch_tensor), intent(in) :: input_tensor, target_tensor
      !> What is done with the losses of all elements
      integer, optional, intent(in) :: reduction_type

      integer :: reduction
      character(4) :: reduction_name

      reduction = torch_kMean
      if (present(reduction_type)) reduction = reduction_type
      select case (reduction)
      case (torch_kNone)
         reduction_name = "none"
      case (torch_kMean)
         reduction_name = "mean"
      case (torch_kSum)
         reduction_name = "sum"
      case default
         call refuse("there is no such reduction: use torch_kMean, torch_kSum or torch_kNone")
      end select
      call into(loss_tensor%t, name, input_tensor%t, target_tensor%t, reduction_name)
      call have_read(input_tensor)
      call have_read(target_tensor)
   end subroutine compute
end module ftorch_loss
