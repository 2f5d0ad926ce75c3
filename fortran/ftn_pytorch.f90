! SPDX-License-Identifier: MIT
!> ftn_pytorch: call the functions of a Python script, PyTorch included, with the arrays of a Fortran program.
!>
!> A first program
!>
!>    use ftn_pytorch
!>    type(torch_pymodule) :: model
!>    real :: u(100, 40), v(100, 40), du(100, 40)
!>    call model%load("emulator.py")
!>    call model%forward([torch_in(u), torch_in(v)], [torch_out(du)])
!>
!> with emulator.py, which knows nothing of Fortran
!>
!>    import torch
!>    net = torch.nn.Linear(100, 100)
!>    def ftn_pytorch_forward(u, v):
!>        return net(u) + v
!>
!> Arguments. torch_in(x) describes what the script reads, torch_out(x) what it may write, torch_copy(x) copies at
!> once; torch_in("name", x) makes a keyword argument. Nothing else is copied: the description keeps the address, so
!>
!>  - describe variables, not expressions: torch_in(real(t, 4)) would refer to a temporary that is gone when the call
!>    is made. Write torch_copy(real(t, 4)), or load(..., dtype="float32") and pass t itself;
!>  - a description may be kept and passed again as long as the array stays where it is. After deallocation,
!>    reallocation, move_alloc or a pointer swap it means the old memory;
!>  - scalars and texts are stored by value by torch_in and torch_copy, and by reference by torch_out;
!>  - an absent optional dummy must not be described: some compilers crash on the way.
!>
!> Kinds. integer of 1, 2, 4, 8 bytes; real and complex of kinds real32 and real64; logical(c_bool), and logical scalars
!> of all kinds; character scalars. Ranks 0 to 7, sections and component sections included.
!>
!> Axes. An array (nx, ny) is a tensor (ny, nx) over the same memory, or (nx, ny) after load(..., layout="same").
!>
!> Results. Arrays given as outputs receive copies, which must have the shape of the result. A torch_tensor or
!> torch_results shares the memory of the result: pointers from to_array are valid until it is freed or reused.
!>
!> Errors. Every procedure that can fail takes stat and errmsg. With stat the program goes on; without it a failure
!> stops the program with the reason, exit code 1, after the handler of ftn_pytorch_on_error was called.
!>
!> Owners. torch_pymodule, torch_module, torch_tensor, torch_tensor_wrap and torch_results are released by free, or when
!> a variable ends its life. Copies are aliases and die with the first one that is released.
module ftn_pytorch
   use fpt_arg, only : torch_arg, torch_copy, torch_in, torch_out
   use fpt_call, only : torch_call
   use fpt_codes
   use fpt_functions
   use fpt_memory, only : torch_in, torch_out, torch_pin, torch_unpin
   use fpt_module, only : torch_module, torch_pymodule, torch_use_device => module_use_device, &
      torch_use_inference_mode => module_use_inference_mode
   use fpt_results, only : torch_results
   use fpt_runtime, only : ftn_pytorch_diagnose, ftn_pytorch_init, ftn_pytorch_on_warning, ftn_pytorch_set_host, &
      ftn_pytorch_set_threads, &
      ftn_pytorch_version
   use fpt_status, only : ftn_pytorch_on_error
   use fpt_optimizer, only : torch_closure, torch_optimizer
   use fpt_procedure, only : torch_procedure, torch_register
   use fpt_scope, only : torch_scope
   use fpt_tensor, only : assignment(=), operator(+), operator(-), operator(*), operator(/), operator(**), &
      operator(==), operator(/=), operator(<), operator(<=), operator(>), operator(>=), matmul, torch_tensor
   use fpt_training, only : torch_averaged, torch_grad_scaler, torch_loss, torch_scheduler
   use fpt_wrap, only : torch_tensor_wrap
   implicit none
   public
end module ftn_pytorch
