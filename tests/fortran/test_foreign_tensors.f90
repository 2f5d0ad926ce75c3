! SPDX-License-Identifier: MIT
!> Tensors of other kinds in expressions and as targets: parts of values with a graph, and what only scripts can make.
program test_foreign_tensors
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type(torch_scope) :: scope

   call scope%begin()
   call parts_are_overwritten()
   call arrays_of_numpy()
   call foreign_tensors()
   call scope%end()
   call finish()

contains

   !> What is written into a part of a value ends the graph of that part
   subroutine parts_are_overwritten()
      real(real64), target :: a(3), found(3)
      type(torch_tensor) :: x, y, part, loss, slope

      a = [1, 2, 3]
      call x%from_array(a)
      call x%set_requires_grad()
      y = x*x
      part = torch_reshape(y, [3])
      call part%copy_from(torch_in(5))
      loss = torch_sum(part*x)
      call loss%backward()
      call x%grad(slope)
      call slope%copy_to(torch_out(found))
      call expect(all(found == 5), "a number into all of a value, by another shape")
      call x%zero_grad()
      y = x*x
      part = torch_slice(y, 1, last=1)
      call part%copy_from(torch_copy([7]))
      loss = torch_sum(y)
      call loss%backward()
      call x%grad(slope)
      call slope%copy_to(torch_out(found))
      call expect(all(found == [0, 4, 6]), "an array into a part of a value")
      call x%zero_grad()
      part = torch_slice(x*x, 1, first=2)
      loss = torch_slice(x*3, 1, last=2)
      call part%copy_from(loss%arg())
      loss = torch_sum(part*torch_slice(x, 1, last=2))
      call loss%backward()
      call x%grad(slope)
      call slope%copy_to(torch_out(found))
      call expect(all(found == [3, 6, 0]), "a tensor into a part, which brings no graph")
   end subroutine parts_are_overwritten

   !> Operators are those of torch on either side of an array of NumPy, which knows nothing of gradients
   subroutine arrays_of_numpy()
      type(torch_pymodule) :: numpy
      type(torch_results) :: results
      type(torch_tensor) :: x, y, z, slope
      real(real64), target :: a(3)
      real(real64) :: found(3)

      a = [1, 2, 3]
      call numpy%load(script("counter.py"))
      call numpy%call("both", [torch_in(a)], results)
      call results%get(1, x)
      call y%from_array(a)
      call y%set_requires_grad()
      z = torch_sum(x*y + y*x)
      call z%backward()
      call y%grad(slope)
      call slope%copy_to(torch_out(found))
      call expect(all(abs(found - 2*(a + 1)) < 1d-12), "gradients beside an array of NumPy")
      z = x*x
      call z%copy_to(torch_out(found))
      call expect(all(abs(found - (a + 1)**2) < 1d-12), "an array of NumPy on both sides")
      call numpy%call("backwards", [torch_in(a)], results)
      call results%get(1, z)
      z = z*1d0
      call z%copy_to(torch_out(found))
      call expect(all(found == [3, 2, 1]), "an array of NumPy that runs backwards")
      call numpy%call("both", [x%arg()], results)
      call results%get(2, z)
      call z%copy_to(torch_out(found))
      call expect(all(abs(found - a) < 1d-12), "a script of NumPy gets an array of NumPy again")
   end subroutine arrays_of_numpy

   !> Tensors that torch would change before it refuses to, or without memory to read
   subroutine foreign_tensors()
      real(real64), target :: a(3)
      real(real64) :: found(3)
      type(torch_pymodule) :: foreign
      type(torch_results) :: results
      type(torch_tensor) :: x, y
      integer :: stat
      character(:), allocatable :: errmsg

      a = 2
      call foreign%load(script("foreign.py"))
      call foreign%call("of_inference", results)
      call results%get(1, x)
      call x%copy_from(torch_in(5d0), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a number into one of inference", errmsg, "inference mode")
      call x%copy_from(torch_in(a), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an array into a tensor of inference", errmsg)
      call x%copy_to(torch_out(found))
      call expect(all(found == 1), "which has its values still")
      call x%zeros([3], dtype="float64")
      call torch_call("clone", [x%arg()], y)
      call foreign%call("take_memory", [y%arg()])
      call x%copy_from(y%arg(), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "from a tensor without memory", errmsg, "resized to 0 bytes")
      call y%copy_from(x%arg(), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "into a tensor without memory", errmsg, "resized to 0 bytes")
      call y%copy_from(torch_in(1), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a number into one", errmsg, "resized to 0 bytes")
   end subroutine foreign_tensors
end program test_foreign_tensors
