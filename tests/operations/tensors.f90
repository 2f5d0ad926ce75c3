! SPDX-License-Identifier: MIT
!> Tensors as arguments, and derivatives
module tensors
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: use_tensors

contains

   subroutine use_tensors()
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: wrap

      theme = "tensors"
      call tensor%from_array(torch_in(x))
      call model%forward([tensor%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("tensor: input")
      call tensor%set_requires_grad(.true.)
      call model%forward([tensor%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("tensor: input that gradients are wanted of")
      call wrap%create()
      call wrap%add_array(x)
      call model%forward(wrap, tensor, stat=stat, errmsg=errmsg)
      call saw("wrap: forward")
      call wrap%free()
      call tensor%free()
      call model%call("ftn_pytorch_adjoint:1:ftn_pytorch_forward", [torch_in(y), torch_in(x)], results, stat=stat, &
         errmsg=errmsg)
      call saw_results("adjoint")
      call model%call("ftn_pytorch_adjoint:2:ftn_pytorch_forward", [torch_in(y), torch_in(x)], results, stat=stat, &
         errmsg=errmsg)
      call saw_results("adjoint: of the second of one")
   end subroutine use_tensors
end module tensors
