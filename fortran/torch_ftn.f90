! SPDX-License-Identifier: MIT
!> torch_ftn: the module of pytorch-fortran 0.4, for programs that were written against it.
!>
!>    use torch_ftn
!>    type(torch_pymodule) :: model
!>    type(torch_tensor_wrap) :: inputs
!>    type(torch_tensor) :: output
!>    real(real32), pointer :: p(:, :)
!>    call inputs%create
!>    call inputs%add_array(x)
!>    call model%load("script.py")
!>    call model%forward(inputs, output)
!>    call output%to_array(p)
!>
!> The types are those of module ftn_pytorch, where everything else is found; both may be used side by side. An array
!> (nx, ny) is a tensor (ny, nx) over the same memory. A list that is filled once can be passed again and again while
!> its arrays change; scalars are taken when they are added.
!>
!> Where pytorch-fortran ended in an uncaught C++ exception, these procedures stop the program with the reason, or
!> return it in stat and errmsg.
module torch_ftn
   use fpt_module, only : module_use_device, module_use_inference_mode, torch_module, torch_pymodule
   use fpt_tensor, only : torch_tensor
   use fpt_wrap, only : torch_tensor_wrap
   implicit none
   public
end module torch_ftn
