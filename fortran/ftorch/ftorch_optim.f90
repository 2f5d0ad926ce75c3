! SPDX-License-Identifier: MIT
!> Optimizers of FTorch on top of torch_optimizer.
module ftorch_optim
   use, intrinsic :: iso_c_binding, only : c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : real64
   use fpt_arg, only : torch_arg, torch_copy, torch_in
   use fpt_optimizer, only : torch_optimizer
   use fpt_tensor, only : base => torch_tensor
   use ftorch_tensor, only : torch_tensor
   implicit none
   private

   public :: torch_optim, torch_optim_SGD, torch_optim_Adam, torch_optim_AdamW
   public :: torch_optim_step, torch_optim_zero_grad, torch_optim_delete

   !> An optimizer; make it with torch_optim_SGD or another procedure
   type :: torch_optim
      !> Null where there are no contents. It must not be looked into
      type(c_ptr) :: p = c_null_ptr
      !> The optimizer of ftn_pytorch
      type(torch_optimizer) :: o
   contains
      procedure :: step => torch_optim_step
      procedure :: zero_grad => torch_optim_zero_grad
   end type torch_optim

   !> What p points to
   integer, target, save :: something = 0

contains

   !> Make an optimizer of torch.optim
   subroutine create(optim, class_name, parameters, options)
      !> Receives the optimizer; what it was is released
      type(torch_optim), intent(inout) :: optim
      !> Name of the class
      character(*), intent(in) :: class_name
      !> What is trained
      type(torch_tensor), intent(in) :: parameters(:)
      !> Settings
      type(torch_arg), contiguous, target :: options(:)

      type(base) :: tensors(size(parameters))
      integer :: i

      do i = 1, size(parameters)
         tensors(i) = parameters(i)%t
      end do
      call optim%o%create(class_name, tensors, options)
      call tensors%free()
      optim%p = c_loc(something)
   end subroutine create

   !> A setting, or its default
   pure function number_or(setting, default) result(value)
      !> Setting
      real(real64), optional, intent(in) :: setting
      !> What it is where it is absent
      real(real64), intent(in) :: default
      real(real64) :: value

      value = default
      if (present(setting)) value = setting
   end function number_or

   !> A switch, which is off where it is absent
   pure function is_on(switch) result(value)
      !> Setting
      logical, optional, intent(in) :: switch
      logical :: value

      value = .false.
      if (present(switch)) value = switch
   end function is_on

   !> Gradient descent
   subroutine torch_optim_SGD(optim, parameters, learning_rate, momentum, weight_decay, dampening, nesterov)
      !> Receives the optimizer; what it was is released
      type(torch_optim), intent(inout) :: optim
      !> What is trained
      type(torch_tensor), intent(in) :: parameters(:)
      !> Step length, default 0.001
      real(real64), optional, intent(in) :: learning_rate
      !> Momentum, its loss by weights, and how much less of a gradient enters it, default 0
      real(real64), optional, intent(in) :: momentum, weight_decay, dampening
      !> Momentum of Nesterov, default false
      logical, optional, intent(in) :: nesterov

      call create(optim, "SGD", parameters, [torch_copy("lr", number_or(learning_rate, 1e-3_real64)), &
         torch_copy("momentum", number_or(momentum, 0.0_real64)), &
         torch_copy("dampening", number_or(dampening, 0.0_real64)), &
         torch_copy("weight_decay", number_or(weight_decay, 0.0_real64)), torch_copy("nesterov", is_on(nesterov))])
   end subroutine torch_optim_SGD

   !> Adam
   subroutine torch_optim_Adam(optim, parameters, learning_rate, beta_1, beta_2, eps, weight_decay, amsgrad)
      !> Receives the optimizer; what it was is released
      type(torch_optim), intent(inout) :: optim
      !> What is trained
      type(torch_tensor), intent(in) :: parameters(:)
      !> Step length, default 0.001
      real(real64), optional, intent(in) :: learning_rate
      !> Decays of the means of gradients and of their squares, default 0.9 and 0.999
      real(real64), optional, intent(in) :: beta_1, beta_2
      !> Added to the denominator, default 1e-8; weight decay, default 0
      real(real64), optional, intent(in) :: eps, weight_decay
      !> Whether the largest mean of squares so far counts, default false
      logical, optional, intent(in) :: amsgrad

      call create_adam(optim, "Adam", parameters, learning_rate, beta_1, beta_2, eps, &
         number_or(weight_decay, 0.0_real64), amsgrad)
   end subroutine torch_optim_Adam

   !> Adam with a weight decay of its own
   subroutine torch_optim_AdamW(optim, parameters, learning_rate, beta_1, beta_2, eps, weight_decay, amsgrad)
      !> Receives the optimizer; what it was is released
      type(torch_optim), intent(inout) :: optim
      !> What is trained
      type(torch_tensor), intent(in) :: parameters(:)
      !> Step length, default 0.001
      real(real64), optional, intent(in) :: learning_rate
      !> Decays of the means of gradients and of their squares, default 0.9 and 0.999
      real(real64), optional, intent(in) :: beta_1, beta_2
      !> Added to the denominator, default 1e-8; weight decay, default 0.01
      real(real64), optional, intent(in) :: eps, weight_decay
      !> Whether the largest mean of squares so far counts, default false
      logical, optional, intent(in) :: amsgrad

      call create_adam(optim, "AdamW", parameters, learning_rate, beta_1, beta_2, eps, &
         number_or(weight_decay, 1e-2_real64), amsgrad)
   end subroutine torch_optim_AdamW

   !> One of the forms of Adam
   subroutine create_adam(optim, class_name, parameters, learning_rate, beta_1, beta_2, eps, weight_decay, amsgrad)
      !> Receives the optimizer; what it was is released
      type(torch_optim), intent(inout) :: optim
      !> Name of the class
      character(*), intent(in) :: class_name
      !> What is trained
      type(torch_tensor), intent(in) :: parameters(:)
      !> Settings of both
      real(real64), optional, intent(in) :: learning_rate, beta_1, beta_2, eps
      !> Weight decay, whose default differs
      real(real64), intent(in) :: weight_decay
      !> Whether the largest mean of squares so far counts, default false
      logical, optional, intent(in) :: amsgrad

      real(real64), target :: betas(2)

      betas = [number_or(beta_1, 0.9_real64), number_or(beta_2, 0.999_real64)]
      call create(optim, class_name, parameters, [torch_copy("lr", number_or(learning_rate, 1e-3_real64)), &
         torch_in("betas", betas), torch_copy("eps", number_or(eps, 1e-8_real64)), &
         torch_in("weight_decay", weight_decay), torch_copy("amsgrad", is_on(amsgrad))])
   end subroutine create_adam

   !> One step, from the gradients that are there
   subroutine torch_optim_step(optim)
      !> Optimizer
      class(torch_optim), intent(in) :: optim

      call optim%o%step()
   end subroutine torch_optim_step

   !> Forget the gradients
   subroutine torch_optim_zero_grad(optim)
      !> Optimizer
      class(torch_optim), intent(in) :: optim

      call optim%o%zero_grad()
   end subroutine torch_optim_zero_grad

   !> Release an optimizer; one that was never made is fine
   subroutine torch_optim_delete(optim)
      !> Without contents afterwards
      type(torch_optim), intent(inout) :: optim

      call optim%o%free()
      optim%p = c_null_ptr
   end subroutine torch_optim_delete
end module ftorch_optim
