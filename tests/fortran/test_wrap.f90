! SPDX-License-Identifier: MIT
!> A torch_tensor_wrap carries scalars of every kind, texts, tensors, arrays and descriptions, in order and by name.
program test_wrap
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : expect, expect_status, finish, script, with_descriptors
   use ftn_pytorch
   implicit none

   type :: cell
      integer(int32) :: id = 0
      real(real64) :: t = 0
   end type cell

   type(torch_pymodule) :: model

   call model%load(script("lists.py"))
   call carries_scalars()
   call carries_arrays_and_tensors()
   call is_reused()
   call trains()
   call refuses()
   call names_arguments()
   call finish()

contains

   !> What the script received in the last call
   subroutine received(index, expected)
      integer, intent(in) :: index
      character(*), intent(in) :: expected

      type(torch_results) :: results
      character(:), allocatable :: text

      call model%call("what", [torch_in(index)], results)
      call results%scalar(1, text)
      call expect(text == expected, "argument " // text // " instead of " // expected)
   end subroutine received

   subroutine carries_scalars()
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      integer(int32) :: n
      integer(int64), pointer :: p(:)

      n = 1
      call list%create()
      call list%add_scalar(n)
      n = 2
      call list%add_scalar(-3_int8)
      call list%add_scalar(4_int16)
      call list%add_scalar(5_int64)
      call list%add_scalar(0.5_real32)
      call list%add_scalar(0.25_real64)
      call list%add_scalar(cmplx(1, 2, real32))
      call list%add_scalar(cmplx(3, 4, real64))
      call list%add_scalar(.true.)
      call list%add_scalar(.false._c_bool)
      call list%add_scalar(.true._int16)
      call list%add_scalar(.false._int64)
      call list%add_scalar("text  ")
      call model%forward(list, output)
      call output%to_array(p)
      call expect(p(1) == 13, "thirteen scalars arrive")
      call received(1, "int=1")
      call received(2, "int=-3")
      call received(3, "int=4")
      call received(4, "int=5")
      call received(5, "float=0.5")
      call received(6, "float=0.25")
      call received(7, "complex=(1+2j)")
      call received(8, "complex=(3+4j)")
      call received(9, "bool=True")
      call received(10, "bool=False")
      call received(11, "bool=True")
      call received(12, "bool=False")
      call received(13, "str=text")
   end subroutine carries_scalars

   subroutine carries_arrays_and_tensors()
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: tensor, output
      real(real64) :: x(4), y(2, 3)
      type(cell) :: cells(3)

      x = [1, 2, 3, 4]
      y = 2
      cells%t = 5
      call tensor%from_array(y)
      call list%create()
      call list%add_array(x)
      call list%add_array(x(::2))
      call list%add_tensor(tensor)
      call list%add_array(torch_copy(2*x))
      if (with_descriptors()) call list%add_array(torch_in(cells%t))
      call model%forward(list, output)
      call received(1, "tensor(4,)=10.0")
      call received(2, "tensor(2,)=4.0")
      call received(3, "tensor(3, 2)=12.0")
      call received(4, "tensor(4,)=20.0")
      if (with_descriptors()) call received(5, "tensor(3,)=15.0")
   end subroutine carries_arrays_and_tensors

   subroutine is_reused()
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      real(real32) :: x(2)
      integer(int64), pointer :: p(:)
      integer :: step

      call list%create
      call list%add_array(x)
      do step = 1, 10
         x = step
         call model%forward(list, output)
      end do
      call received(1, "tensor(2,)=20.0")
      call list%clear()
      call model%forward(list, output)
      call output%to_array(p)
      call expect(p(1) == 0, "a cleared list is empty")
      call list%add_array(x)
      call list%create()
      call list%add_scalar(1)
      call model%forward(list, output)
      call output%to_array(p)
      call expect(p(1) == 1, "create empties a list")
   end subroutine is_reused

   subroutine trains()
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: target
      real(real32) :: x(2), y(3), loss
      real(real64) :: precise
      logical :: done

      x = 1
      y = 2
      call list%create()
      call list%add_array(x)
      call target%from_array(y)
      done = model%train(list, target, loss)
      call expect(.not. done .and. loss == 6, "train with a list: real32")
      call list%add_scalar(1)
      done = model%train(list, target, precise)
      call expect(done .and. precise == 6, "train with a list: real64")
   end subroutine trains

   subroutine refuses()
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: tensor
      real(real64), allocatable :: a(:)
      character(:), allocatable :: errmsg
      integer :: stat

      call list%create()
      call list%add_tensor(tensor, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "tensor without contents")
      call list%add_array(a, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_UNALLOCATED, "unallocated array", errmsg, "allocate")
      call list%add_scalar(1, name="", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "empty name")
   end subroutine refuses

   subroutine names_arguments()
      type(torch_pymodule) :: keywords
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      type(torch_tensor) :: x
      real(real64) :: values(2)
      real(real64), pointer :: p(:)

      call keywords%load(script("keywords.py"))
      values = [1, 2]
      call x%from_array(values)
      call list%create()
      call list%add_tensor(x, name="x")
      call list%add_scalar(10, name="scale")
      call list%add_array(values, "shift")
      call list%add_scalar("abc", name="label")
      call keywords%forward(list, output)
      call output%to_array(p)
      call expect(all(p == [14, 25]), "named arguments of a list")
   end subroutine names_arguments
end program test_wrap
