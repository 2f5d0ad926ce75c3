! SPDX-License-Identifier: MIT
!> Parameters of a saved model are the first tensors of a process: nothing has computed with tensors before.
program test_direct_first
   use, intrinsic :: iso_fortran_env, only : real32
   use check, only : expect, finish
   use ftn_pytorch
   implicit none

   type(torch_module) :: model, other
   type(torch_optimizer) :: optimizer
   type(torch_results) :: parameters
   type(torch_tensor) :: weight, result, gradient
   real(real32) :: found(16, 64)
   character(16) :: first
   integer :: stat
   character(:), allocatable :: errmsg

   errmsg = ""
   call get_command_argument(1, first)
   call model%load("direct_mlp.pt")
   select case (first)
   case ("optimizer")
      call optimizer%create("Adam", model, [torch_in("lr", 1d-2)], stat=stat, errmsg=errmsg)
      call expect(stat == FTN_PYTORCH_OK, "an optimizer of a model as the first of all: " // errmsg)
   case ("input")
      call model%parameters(parameters)
      call parameters%get("0.weight", weight)
      call other%load("direct_mlp_eval.pt")
      call other%forward([weight%arg()], result)
      result = torch_sum(result)
      call result%backward(stat=stat, errmsg=errmsg)
      call expect(stat == FTN_PYTORCH_OK, "a parameter as an input has a graph: " // errmsg)
      call weight%grad(gradient)
      found = 0
      call gradient%copy_to(torch_out(found))
      call expect(any(found /= 0), "and a gradient")
   end select
   call finish()
end program test_direct_first
