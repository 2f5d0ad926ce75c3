! SPDX-License-Identifier: MIT
!> Results of every form are found by index and by name, as tensors, pointers, copies, numbers and texts.
program test_results
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : expect, expect_status, finish, script, with_descriptors
   use ftn_pytorch
   implicit none

   type :: cell
      integer :: id = 0
      real(real64) :: t = -1
   end type cell

   type(torch_pymodule) :: model

   call model%load(script("results.py"))
   call none_and_one()
   call several()
   call by_name()
   call of_classes()
   call numbers_that_do_not_fit()
   call keys()
   call copies()
   call copies_into_what_is_described()
   call replaced()
   call finish()

contains

   subroutine none_and_one()
      type(torch_results) :: results
      type(torch_tensor) :: tensor
      real(real64), pointer :: p(:, :)
      integer :: stat

      call model%call("nothing", results)
      call expect(results%count() == 0, "None has no results")
      call results%to_array(1, p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "None: no result 1")
      call model%call("nothing")
      call model%call("single", results)
      call expect(results%count() == 1, "one result")
      call expect(results%name(1) == "", "one result has no name")
      call results%to_array(1, p)
      call expect(all(shape(p) == [3, 2]), "one result: axes reversed")
      call expect(p(2, 1) == 1 .and. p(1, 2) == 3, "one result: values")
      call results%get(1, tensor)
      call expect(all(tensor%shape() == [3, 2]) .and. tensor%dtype() == "float64", "one result as tensor")
   end subroutine none_and_one

   subroutine several()
      type(torch_results) :: results
      real(real32) :: x(2), y(2), r
      real(real64) :: d
      integer(int8) :: i8
      integer(int16) :: i16
      integer(int32) :: i32
      integer(int64) :: i64
      logical :: l
      logical(c_bool) :: l8
      logical(int16) :: l16
      logical(int64) :: l64
      complex(real32) :: c
      complex(real64) :: z
      character(:), allocatable :: text

      x = 1
      call model%call("several", [torch_in(x)], results)
      call expect(results%count() == 6, "six results")
      call results%copy_to(1, y)
      call expect(all(y == 2), "result 1: array")
      call results%scalar(2, i8)
      call results%scalar(2, i16)
      call results%scalar(2, i32)
      call results%scalar(2, i64)
      call expect(i8 == 2 .and. i16 == 2 .and. i32 == 2 .and. i64 == 2, "result 2: integer of every kind")
      call results%scalar(3, r)
      call results%scalar(3, d)
      call expect(r == 3.5 .and. d == 3.5_real64, "result 3: real of both kinds")
      l = .false.
      l8 = .false.
      l16 = .false.
      l64 = .false.
      call results%scalar(4, l)
      call results%scalar(4, l8)
      call results%scalar(4, l16)
      call results%scalar(4, l64)
      call expect(l .and. logical(l8) .and. logical(l16) .and. logical(l64), "result 4: logical of every kind")
      call results%scalar(5, text)
      call expect(text == "four", "result 5: text")
      call results%scalar(6, c)
      call results%scalar(6, z)
      call expect(c == (1.0, 2.0) .and. z == (1.0_real64, 2.0_real64), "result 6: complex of both kinds")
   end subroutine several

   subroutine by_name()
      type(torch_results) :: results
      type(torch_tensor) :: tensor
      real(real32), pointer :: p(:, :)
      real(real32) :: flux(3, 2)
      character(8) :: padded
      character(:), allocatable :: text, errmsg
      integer :: n, stat

      call model%call("named", results)
      call expect(results%name(2) == "count", "name of a result")
      call results%to_array("flux", p)
      call expect(all(shape(p) == [3, 2]) .and. all(p == 1), "pointer by name")
      flux = 0
      call results%copy_to("flux", flux)
      call expect(all(flux == 1), "copy by name")
      call results%get("flux", tensor)
      call expect(tensor%is_set(), "tensor by name")
      padded = "count"
      call results%scalar(padded, n)
      call expect(n == 12, "trailing blanks of a name do not count")
      call results%scalar("label", text)
      call expect(text == "k" // char(195) // char(182) // "ln", "text as UTF-8")
      call results%scalar("flow", n, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "unknown name", errmsg, "flux")
      call results%scalar("flux", n, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "an array is no scalar", errmsg, &
         "the variable is a scalar: receive an array")
   end subroutine by_name

   subroutine of_classes()
      type(torch_results) :: results
      real(real64) :: residual, lon
      real(real32) :: lat
      logical :: closed

      call model%call("dataclass", results)
      call results%scalar("residual", residual)
      call results%scalar("closed", closed)
      call expect(results%count() == 3 .and. residual == 1e-3_real64 .and. closed, "fields of a dataclass")
      call model%call("namedtuple", results)
      call results%scalar("lon", lon)
      call results%scalar(2, lat)
      call expect(lon == 12.5_real64 .and. lat == 50, "fields of a namedtuple by name and index")
   end subroutine of_classes

   subroutine numbers_that_do_not_fit()
      type(torch_results) :: results
      integer(int32) :: i32
      integer(int8) :: i8
      integer(int64) :: i64
      real(real32) :: r
      logical :: l
      integer :: stat
      character(:), allocatable :: errmsg

      i32 = -1
      i8 = -1
      call model%call("large", results)
      call results%scalar(1, i64)
      call expect(i64 == 2_int64**40, "a large integer in integer(int64)")
      call results%scalar(1, i32, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a large integer in integer(int32)", errmsg, "integer(int64)")
      call results%scalar(2, i8, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "300 in integer(int8)")
      call expect(i32 == -1 .and. i8 == -1, "untouched on failure")
      call results%scalar(4, i8, stat=stat)
      call expect(stat == 0 .and. i8 == 7, "a 0-dim tensor of int64 that fits integer(int8)")
      call results%scalar(3, i32, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a real is no integer")
      call results%scalar(1, l, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "an integer is no logical")
      call results%scalar(3, r, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a double in real(real32)")
   end subroutine numbers_that_do_not_fit

   subroutine keys()
      type(torch_results) :: results
      character(:), allocatable :: errmsg
      integer :: n, stat

      call model%call("named", results)
      call results%scalar(2_int8, n)
      call results%scalar(2_int16, n)
      call results%scalar(2_int64, n)
      call expect(n == 12, "an index is an integer of any kind")
      call results%scalar(5, n, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "index beyond the last result")
      call results%scalar(0, n, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "index zero")
      call results%scalar(2_int64**40 + 2, n, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "index beyond all integers")
      call results%scalar(2.0, n, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a real is no key", errmsg, "index")
   end subroutine keys

   subroutine copies()
      type(torch_results) :: results
      type(cell) :: cells(3, 2)
      complex(real64) :: c(3, 2)
      real(real64), target :: d(3, 2), wide(6, 2)
      real(real32) :: s(3, 2)
      integer :: stat

      call model%call("single", results)
      call results%copy_to(1, cells%t)
      call expect(cells(3, 2)%t == 5 .and. all(cells%id == 0), "copy into a component")
      c = (0, 7)
      call results%copy_to(1, c(3:1:-1, :)%re)
      call expect(all(c%re == cells(3:1:-1, :)%t) .and. all(c%im == 7), "copy into real parts")
      call results%copy_to(1, d)
      call expect(d(3, 2) == 5, "copy of the same type")
      s = -1
      call results%copy_to(1, s, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "copy into a narrower type")
      call expect(all(s == -1), "copy into a narrower type: untouched")
      call results%copy_to(1, s, cast=.true.)
      call expect(s(3, 2) == 5, "copy into a narrower type with cast")
      wide = -1
      call results%copy_to(1, wide(::2, :))
      call expect(wide(5, 2) == 5 .and. all(wide(2::2, :) == -1), "copy into a section")
      wide = -1
      call results%copy_to(1, wide(6:1:-2, :))
      call expect(wide(2, 2) == 5 .and. wide(6, 1) == 0, "copy into a section with negative stride")
      call model%call("named", results)
      call results%copy_to("flux", d)
      call expect(all(d == 1), "copy into a wider type")
   end subroutine copies

   subroutine copies_into_what_is_described()
      type(torch_results) :: results
      type(cell) :: cells(3, 2)
      real(real64) :: d(3, 2), wide(6, 2)
      real(real64), allocatable :: none(:, :)
      real(real32) :: s(3, 2)
      integer :: stat
      character(:), allocatable :: errmsg

      call model%call("single", results)
      call results%copy_to(1, torch_out(d))
      call expect(d(3, 2) == 5, "copy into torch_out")
      s = -1
      call results%copy_to(1, torch_out(s), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "copy into torch_out of a narrower type", errmsg)
      call expect(all(s == -1), "copy into torch_out of a narrower type: untouched")
      call results%copy_to(1, torch_out(s), cast=.true.)
      call expect(s(3, 2) == 5, "copy into torch_out of a narrower type with cast")
      wide = -1
      call results%copy_to(1, torch_out(wide(6:1:-2, :)))
      call expect(wide(2, 2) == 5 .and. wide(6, 1) == 0, "copy into torch_out of a section")
      call results%copy_to(1, torch_out(none), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_UNALLOCATED, "copy into what is not allocated", errmsg)
      call results%copy_to("no such name", torch_out(d), stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "copy of no such result")
      call model%call("named", results)
      call results%copy_to("flux", torch_out(d))
      call expect(all(d == 1), "copy of a named result")
      if (with_descriptors()) then
         call results%copy_to("flux", torch_out(cells%t))
         call expect(all(cells%t == 1) .and. all(cells%id == 0), "copy into a component")
      end if
   end subroutine copies_into_what_is_described

   subroutine replaced()
      type(torch_results) :: results
      real(real64) :: x(3)
      real(real64), pointer :: p(:)

      x = 4
      call model%forward([torch_in(x)], results)
      call model%forward([torch_in(x)], results)
      call expect(results%count() == 2, "results of a second call replace those of the first")
      call results%to_array("half", p)
      call expect(all(p == 2), "results of forward by name")
   end subroutine replaced
end program test_results
