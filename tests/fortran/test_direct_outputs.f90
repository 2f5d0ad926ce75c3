! SPDX-License-Identifier: MIT
!> Outputs of calls that are tensors in memory of torch: of saved models, with and without Python.
program test_direct_outputs
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real64
   use check, only : expect, expect_status, expect_text, finish, is_mapped
   use ftn_pytorch
   implicit none

   character(6) :: backend
   integer :: moved

   call get_command_argument(1, backend)
   call outputs_of_torch()
   call outputs_of_functions()
   call results_go_on()
   call output_is_moved()
   call steps_count()
   call models_count()
   call lists_of_numbers()
   if (command_argument_count() == 1) call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call finish()

contains

   !> Outputs of calls may be tensors that torch has made; torch knows that they were written
   subroutine outputs_of_torch()
      type(torch_module) :: model
      type(torch_tensor) :: x, y, p, q, wide
      real(real64), target :: a(3, 2), found(3, 2)
      integer :: i, stat
      character(:), allocatable :: errmsg

      a = reshape([(real(i, real64), i=1, 6)], [3, 2])
      call model%load("direct_weighted.pt", backend=backend)
      call x%from_array(a)
      call y%zeros([3, 2], dtype="float64")
      call model%forward([x%arg()], [y%arg()])
      call y%copy_to(torch_out(found))
      call expect(all(found == a*spread([1d0, 2d0, 3d0], 2, 2)), "written into memory of torch")
      call p%ones([3, 2], dtype="float64")
      call p%set_requires_grad()
      q = torch_sum(p*y)
      call model%forward([x%arg()], [y%arg()])
      call q%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a gradient that needs the values before", errmsg)
      call expect_text(errmsg, "modified by an inplace operation", "a gradient that needs the values before")
      y = p*2
      call model%forward([x%arg(), x%arg()], [y%arg()], stat=stat)
      call expect(stat /= FTN_PYTORCH_OK .and. y%requires_grad(), "a call that fails leaves the graph alone")
      call model%forward([x%arg()], [y%arg()])
      call expect(.not. y%requires_grad(), "the graph of the values before has ended")
      y = p*2
      wide = torch_slice(y, 1, first=1, last=3)
      call model%forward([x%arg()], [wide%arg()], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a view of a tensor with a graph", errmsg)
      call torch_call("as_strided", [x%arg(), torch_copy([2, 3]), torch_copy([1, 1])], wide)
      call model%forward([x%arg()], [wide%arg()], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "elements that overlap", errmsg)
      call torch_call("expand", [x%arg(), torch_copy([2, 2, 3])], wide)
      call model%forward([x%arg()], [wide%arg()], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "elements at the same place", errmsg, "expanded")
      call y%zeros([2, 2], dtype="float64")
      call model%forward([x%arg()], [y%arg()], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "another shape", errmsg)
   end subroutine outputs_of_torch

   !> The tensor is given other memory during the call: what it had is written, and nothing else
   subroutine output_is_moved()
      type(torch_tensor) :: x, y

      call x%zeros([4], dtype="float64")
      call y%ones([2000], dtype="float64")
      call torch_call("Tensor.set_", [x%arg(), y%arg()], [x%arg()], stat=moved)
      call y%zeros([4], dtype="float64")
   end subroutine output_is_moved

   !> The same of functions of torch
   subroutine outputs_of_functions()
      type(torch_tensor) :: x, y, p, q
      real(real64), target :: a(4), found(4)
      integer :: stat
      character(:), allocatable :: errmsg

      a = [1d0, 2d0, 3d0, 4d0]
      call x%from_array(a)
      call y%ones([4], dtype="float64")
      call p%ones([4], dtype="float64")
      call p%set_requires_grad()
      q = torch_sum(p*y)
      call torch_call("neg", [x%arg()], [y%arg()])
      call y%copy_to(torch_out(found))
      call expect(all(found == -a), "a function writes into a tensor of torch")
      call q%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a gradient that needs the values before", errmsg)
   end subroutine outputs_of_functions

   !> What a model changes in place is a change, too
   subroutine models_count()
      type(torch_module) :: model
      type(torch_results) :: results
      type(torch_tensor) :: p, x, q
      integer :: stat
      character(:), allocatable :: errmsg

      call model%load("direct_passing.pt", backend=backend)
      call p%ones([4], dtype="float64", requires_grad=.true.)
      call x%ones([4], dtype="float64")
      q = torch_sum(p*x)
      call model%call("changed", [x%arg()], results)
      call q%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a gradient that needs the values before the model", errmsg)
      call expect_text(errmsg, "modified by an inplace operation", "a gradient that needs the values before the model")
   end subroutine models_count

   !> A step of an optimizer is a change, with fused kernels too
   subroutine steps_count()
      type(torch_tensor) :: p, q
      type(torch_optimizer) :: optimizer
      integer :: stat
      character(:), allocatable :: errmsg

      call p%ones([4], dtype="float64", requires_grad=.true.)
      call optimizer%create("Adam", [p])
      q = torch_sum(p*p)
      call q%backward(retain_graph=.true.)
      call optimizer%step()
      call q%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a gradient that needs the values before a step", errmsg)
      call expect_text(errmsg, "modified by an inplace operation", "a gradient that needs the values before a step")
   end subroutine steps_count

   !> A result is the output of the next call
   subroutine results_go_on()
      type(torch_module) :: model
      type(torch_results) :: results
      type(torch_tensor) :: x, y
      real(real64), target :: a(3, 2), found(3, 2)
      integer :: i

      a = 1
      call model%load("direct_weighted.pt", backend=backend)
      call x%from_array(a)
      call model%forward([x%arg()], y)
      do i = 2, 4
         a = i
         call model%forward([x%arg()], [y%arg()])
         call y%copy_to(torch_out(found))
         call expect(all(found == i*spread([1d0, 2d0, 3d0], 2, 2)), "a result is written again")
      end do
      call model%forward([x%arg()], results)
      call y%zeros([3, 2], dtype="float64")
      call results%copy_to(1, y%arg())
      call y%copy_to(torch_out(found))
      call expect(all(found == 4*spread([1d0, 2d0, 3d0], 2, 2)), "results are copied into a tensor of torch")
   end subroutine results_go_on

   !> Numbers in lists of a result are an array, and what is None is left out
   subroutine lists_of_numbers()
      type(torch_module) :: model
      type(torch_results) :: results
      integer(int32) :: small(3, 2), none(0)
      integer(int64) :: large(1, 2)
      real(real64) :: halves(2), pair(2), y(2)
      complex(real64) :: z(2)
      logical(c_bool) :: flags(2)
      integer :: stat
      character(:), allocatable :: errmsg

      call model%load("direct_two.pt", backend=backend)
      call model%call("lists", [torch_in(7)], results)
      call results%copy_to("small", torch_out(small))
      call expect(all(small == reshape([1, 2, 3, 4, 5, 7], [3, 2])), "a list of lists is an array")
      call results%copy_to("large", torch_out(large))
      call expect(all(large == reshape([shiftl(7_int64, 40), 2_int64], [1, 2])), "integers of 64 bits")
      call results%copy_to("none", torch_out(none), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "an empty list has no integers", errmsg)
      y = 1
      call model%call("flags", [torch_in(y)], [torch_out(flags), torch_out(halves), torch_out(pair), torch_out(z)])
      call expect(all(logical(flags) .eqv. [.true., .false.]), "a list of logicals")
      call expect(all(halves == [0.5d0, 1.5d0]) .and. all(pair == [1d0, 2.5d0]), "a list and a tuple of numbers")
      call expect(all(z == [(0d0, 1d0), (0d0, 2d0)]), "a tuple of complex numbers")
      call model%call("optional", [torch_in(y)], results)
      call expect(results%count() == 1, "what is None is left out")
      call model%call("uneven", [torch_in(y)], results, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_TYPE, "lists of several lengths", errmsg, "lists of equal length")
   end subroutine lists_of_numbers
end program test_direct_outputs
