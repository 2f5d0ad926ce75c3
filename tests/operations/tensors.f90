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
      call model%call("ftn_pytorch_adjoint:1:ftn_pytorch_forward", [torch_in(y), torch_in(x)], [torch_out(cells)], &
         stat=stat, errmsg=errmsg)
      call saw("adjoint: into an array")
      call model%call("ftn_pytorch_tangent:1:ftn_pytorch_forward", [torch_in(cells), torch_in(x)], [torch_out(y)], &
         stat=stat, errmsg=errmsg)
      call saw("tangent: into an array")
      call model%call("ftn_pytorch_adjoint:1:ftn_pytorch_forward", [torch_in(narrow), torch_in(x)], &
         [torch_out(cells)], stat=stat, errmsg=errmsg)
      call saw("adjoint: too few gradients")
      call model%call("ftn_pytorch_tangent:1:shift", [torch_in(cells), torch_in(x)], [torch_out(first)], stat=stat, &
         errmsg=errmsg)
      call saw("tangent: of a function that changes its input")
      call model%call("ftn_pytorch_adjoint:1:above", [torch_in(y), torch_in(x)], [torch_out(cells)], stat=stat, &
         errmsg=errmsg)
      call saw("adjoint: of logical results")
      call model%call("ftn_pytorch_adjoint:1:nothing", [torch_in(y), torch_in(x)], [torch_out(cells)], stat=stat, &
         errmsg=errmsg)
      call saw("adjoint: of no such function")
   end subroutine use_tensors
end module tensors
