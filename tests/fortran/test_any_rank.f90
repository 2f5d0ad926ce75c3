! SPDX-License-Identifier: MIT
!> Where procedures take arrays of any rank, the compiler lets scalars and more axes than 7 pass: they are refused.
program test_any_rank
   use, intrinsic :: iso_fortran_env, only : int32, real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("results.py"))
   call refuses_scalars()
   call refuses_eight_axes()
   call finish()

contains

   subroutine refuses_scalars()
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      real(real64), target :: x(3), s
      integer(int32) :: n
      integer :: stat
      character(:), allocatable :: errmsg

      x = 1
      s = 2
      n = 3
      call tensor%from_array(x)
      call tensor%from_array(s, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "tensor of a scalar", errmsg, "torch_out(x)")
      call expect(all(tensor%shape() == [3]), "the tensor is as before")
      call tensor%from_array(x(2), stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "tensor of an element")
      call list%create()
      call list%add_array(n, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "list with a scalar", errmsg, "torch_in(x)")
      call list%add_array(4.0_real64, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "list with a number")
   end subroutine refuses_scalars

   subroutine refuses_eight_axes()
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      real(real64), target :: x(1, 2, 1, 2, 1, 2, 1, 2), most(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2)
      integer :: stat
      character(:), allocatable :: errmsg

      x = 1
      most = 1
      call tensor%from_array(x, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "tensor of 8 axes", errmsg, "rank 8")
      call tensor%from_array(most, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "tensor of 15 axes", errmsg, "rank 15")
      call list%create()
      call list%add_array(most, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "list with 15 axes")
      call model%call("single", results)
      call results%copy_to(1, x, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "copy into 8 axes", errmsg, "rank 8")
      call expect(all(x == 1), "copy into 8 axes: untouched")
   end subroutine refuses_eight_axes
end program test_any_rank
