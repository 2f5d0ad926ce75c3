! SPDX-License-Identifier: MIT
!> How the module ftorch ends a program, each way by its name.
program test_ftorch_stop
   use, intrinsic :: iso_c_binding, only : c_int64_t, c_loc
   use, intrinsic :: iso_fortran_env, only : real32
   use ftorch
   implicit none

   type(torch_tensor) :: a, b, many(2)
   type(torch_model) :: model, alias
   type(torch_optim) :: optimizer
   complex, target :: z(2)
   real(real32), target :: x(2, 2), y(3)
   character(20) :: what

   call get_command_argument(1, what)
   x = 1
   y = 1
   call torch_tensor_from_array(a, x, torch_kCPU)
   select case (what)
   case ("unset")
      print *, b%get_rank()
   case ("unset_shape")
      print *, b%get_shape()
   case ("unset_output")
      call torch_tensor_sum(b, a)
   case ("unset_operand")
      a = a + b
   case ("type")
      call torch_tensor_zeros(b, 1, [2_c_int64_t], 9, torch_kCPU)
   case ("no_number")
      call torch_tensor_from_array(b, z, torch_kCPU)
      print *, b%get_dtype()
   case ("device")
      call torch_tensor_zeros(b, 1, [2_c_int64_t], torch_kFloat32, 5)
   case ("no_device")
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCUDA, device_index=7)
      print *, "loaded"
   case ("section")
      call torch_tensor_from_array(b, x(1:1, :), [2, 1], torch_kCPU)
   case ("layout_twice")
      call torch_tensor_from_array(b, x, [2, 2], torch_kCPU)
   case ("layout_axis")
      call torch_tensor_from_array(b, x, [3, 1], torch_kCPU)
   case ("layout_size")
      call torch_tensor_from_blob(b, c_loc(x), 2, [2_c_int64_t, 2_c_int64_t], [1], torch_kFloat32, torch_kCPU)
   case ("shapes")
      call torch_tensor_from_array(b, y, torch_kCPU)
      a = a + b
   case ("to")
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_to(a, b)
   case ("leaf")
      call torch_tensor_from_array(b, x, torch_kCPU, requires_grad=.true.)
      b = b*b
   case ("no_gradient")
      call torch_tensor_from_array(b, x, torch_kCPU, requires_grad=.true.)
      call torch_tensor_get_gradient(a, b)
   case ("reduction")
      call torch_loss_mse(a, a, a, 3)
   case ("not_loaded")
      call torch_model_forward(model, [a], many(:1))
   case ("alias")
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      alias = model
      call torch_model_delete(model)
      call torch_model_forward(alias, [a], many(:1))
   case ("no_file")
      call torch_model_load(model, "there_is_none.pt", torch_kCPU)
   case ("parameters")
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      call torch_model_parameters(model, many)
   case ("results")
      call torch_tensor_from_array(a, x(1, :), torch_kCPU)
      call torch_model_load(model, "ftorch_permuted.pt", torch_kCPU)
      call torch_tensor_zeros(b, 1, [5_c_int64_t], torch_kFloat32, torch_kCPU)
      call torch_model_forward(model, [b], many, requires_grad=.true.)
   case ("too_many")
      call torch_model_load(model, "ftorch_permuted.pt", torch_kCPU)
      call torch_tensor_zeros(b, 1, [5_c_int64_t], torch_kFloat32, torch_kCPU)
      call torch_model_forward(model, [b], many)
   case ("wide_scalar")
      call torch_model_load(model, "ftorch_total.pt", torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_model_forward(model, a, b)
   case ("no_output")
      call torch_model_load(model, "ftorch_total.pt", torch_kCPU)
      call torch_model_forward(model, a, b)
   case ("no_optimizer")
      call optimizer%step()
   case ("untrained")
      call torch_optim_SGD(optimizer, [a])
   end select
   print "(a)", "the program went on"
end program test_ftorch_stop
