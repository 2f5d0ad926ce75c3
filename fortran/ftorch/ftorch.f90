! SPDX-License-Identifier: MIT
!> ftorch: the module of FTorch 1.1, for programs that were written for it. Forms of 1.0 and of what follows 1.1 are
!> taken where one program can have both.
!>
!>    use ftorch
!>    type(torch_model) :: model
!>    type(torch_tensor) :: input(1), output(1)
!>    real, target :: x(5), y(5)
!>    call torch_tensor_from_array(input(1), x, torch_kCPU)
!>    call torch_tensor_from_array(output(1), y, torch_kCPU)
!>    call torch_model_load(model, "model.pt", torch_kCPU)
!>    call torch_model_forward(model, input, output)
!>
!> An array (nx, ny) is a tensor (nx, ny), as FTorch has it. Component t of a torch_tensor is a tensor of module
!> ftn_pytorch, where everything else is found. docs/migrating.md lists the differences.
module ftorch
   use ftorch_devices, only : torch_kCPU, torch_kCUDA, torch_kHIP, torch_kMPS, torch_kXPU
   use ftorch_loss, only : torch_loss_cross_entropy, torch_loss_mse
   use ftorch_model, only : torch_model, torch_model_delete, torch_model_forward, torch_model_is_training, &
      torch_model_load, torch_model_parameters, torch_model_print_parameters, torch_model_save
   use ftorch_optim, only : torch_optim, torch_optim_Adam, torch_optim_AdamW, torch_optim_delete, torch_optim_SGD, &
      torch_optim_step, torch_optim_zero_grad
   use ftorch_tensor, only : assignment(=), operator(+), operator(-), operator(*), operator(/), operator(**), &
      torch_tensor, torch_tensor_array_delete => torch_tensor_delete, torch_tensor_backward, torch_tensor_delete, &
      torch_tensor_empty, torch_tensor_from_array, torch_tensor_from_array_legacy, torch_tensor_from_blob, &
      torch_tensor_get_device_index, torch_tensor_get_device_type, torch_tensor_get_dtype, torch_tensor_get_gradient, &
      torch_tensor_get_rank, torch_tensor_get_shape, torch_tensor_get_stride, torch_tensor_mean, torch_tensor_ones, &
      torch_tensor_print, torch_tensor_requires_grad, torch_tensor_sum, torch_tensor_to, torch_tensor_zero, &
      torch_tensor_zero_grad, torch_tensor_zeros
   use ftorch_types, only : ftorch_int, torch_kFloat32, torch_kFloat64, torch_kInt16, torch_kInt32, torch_kInt64, &
      torch_kInt8
   implicit none
   public

   !> Release a tensor, tensors, a model or an optimizer
   interface torch_delete
      procedure torch_tensor_delete, torch_model_delete, torch_optim_delete
   end interface torch_delete
end module ftorch
