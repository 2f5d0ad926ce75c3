! SPDX-License-Identifier: MIT
!> What the script sees is the memory of the program: address, type, extents and strides of every kind and rank.
program test_describe
   use, intrinsic :: iso_c_binding, only : c_bool, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : address_of, expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type :: cell
      integer(int32) :: id = 0
      real(real64) :: t = 0, u = 0
   end type cell

   type(torch_pymodule) :: model

   call model%load(script("look.py"))
   call describe_r32()
   call describe_r64()
   call describe_i8()
   call describe_i16()
   call describe_i32()
   call describe_i64()
   call describe_c32()
   call describe_c64()
   call describe_l8()
   call describe_any_storage()
   call describe_dummies(4)
   call finish()

contains

   subroutine describe_r32()
      character(*), parameter :: dtype = "float32"
      real(real32), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_r32

   subroutine describe_r64()
      character(*), parameter :: dtype = "float64"
      real(real64), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_r64

   subroutine describe_i8()
      character(*), parameter :: dtype = "int8"
      integer(int8), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_i8

   subroutine describe_i16()
      character(*), parameter :: dtype = "int16"
      integer(int16), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_i16

   subroutine describe_i32()
      character(*), parameter :: dtype = "int32"
      integer(int32), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_i32

   subroutine describe_i64()
      character(*), parameter :: dtype = "int64"
      integer(int64), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_i64

   subroutine describe_c32()
      character(*), parameter :: dtype = "complex64"
      complex(real32), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_c32

   subroutine describe_c64()
      character(*), parameter :: dtype = "complex128"
      complex(real64), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_c64

   subroutine describe_l8()
      character(*), parameter :: dtype = "bool"
      logical(c_bool), target :: x(3, 2, 1, 4, 1, 5, 2)
      include "describe_kind.inc"
   end subroutine describe_l8

   !> Allocatables, pointers and components, with any lower bounds
   subroutine describe_any_storage()
      real(real64), allocatable, target :: a(:, :)
      real(real64), pointer :: p(:, :), q(:)
      type(cell), target :: cells(4)
      complex(real64), target :: z(3)

      allocate (a(-1:1, 0:4))
      call seen(torch_in(a), c_loc(a), "float64", [3, 5], [8, 24]*1_int64)
      call seen(torch_in(a(0, :)), c_loc(a(0, 0)), "float64", [5], [24]*1_int64)
      p => a
      call seen(torch_in(p), c_loc(a), "float64", [3, 5], [8, 24]*1_int64)
      p => a(::2, 1::2)
      call seen(torch_in(p), c_loc(a(-1, 1)), "float64", [2, 2], [16, 48]*1_int64)
      q(-3:) => a(1, :)
      call seen(torch_in(q), c_loc(a(1, 0)), "float64", [5], [24]*1_int64)

      call seen(torch_in(cells%t), c_loc(cells(1)%t), "float64", [4], [24]*1_int64)
      call seen(torch_in(cells(2:4:2)%u), c_loc(cells(2)%u), "float64", [2], [48]*1_int64)
      q => cells%u
      call seen(torch_in(q), c_loc(cells(1)%u), "float64", [4], [24]*1_int64)
      call seen(torch_in(cells%id), c_loc(cells(1)%id), "int32", [4], [24]*1_int64)
      call seen(torch_in(z%im), address_after(c_loc(z), 8), "float64", [3], [16]*1_int64)
   end subroutine describe_any_storage

   !> Explicit-shape and automatic arrays, and dummies of all forms
   subroutine describe_dummies(n)
      integer, intent(in) :: n
      real(real32), target :: automatic(n, n + 1)

      call seen(torch_in(automatic), c_loc(automatic), "float32", [4, 5], [4, 16]*1_int64)
      call of_assumed_shape(automatic(2:, :), c_loc(automatic(2, 1)))
      call of_explicit_shape(automatic, 2, 10, c_loc(automatic))
      call of_assumed_size(automatic, c_loc(automatic))
   end subroutine describe_dummies

   subroutine of_assumed_shape(x, place)
      real(real32), intent(in) :: x(:, :)
      type(c_ptr), intent(in) :: place

      call seen(torch_in(x), place, "float32", [3, 5], [4, 16]*1_int64)
   end subroutine of_assumed_shape

   subroutine of_explicit_shape(x, n, m, place)
      integer, intent(in) :: n, m
      real(real32), intent(in) :: x(n, m)
      type(c_ptr), intent(in) :: place

      call seen(torch_in(x), place, "float32", [2, 10], [4, 8]*1_int64)
   end subroutine of_explicit_shape

   subroutine of_assumed_size(x, place)
      real(real32), intent(in) :: x(*)
      type(c_ptr), intent(in) :: place

      call seen(torch_in(x(1:6)), place, "float32", [6], [4]*1_int64)
   end subroutine of_assumed_size

   !> Address of something that c_loc does not take
   function address_after(place, bytes) result(there)
      type(c_ptr), intent(in) :: place
      integer, intent(in) :: bytes
      type(c_ptr) :: there

      there = transfer(address_of(place) + bytes, there)
   end function address_after

   !> The script sees this memory, and no copy of it
   subroutine seen(x, place, dtype, extents, strides)
      type(torch_arg), target :: x
      type(c_ptr), intent(in) :: place
      character(*), intent(in) :: dtype
      integer, intent(in) :: extents(:)
      integer(int64), intent(in) :: strides(:)

      integer(int64) :: address

      call formed(x, dtype, extents, address, strides)
      if (all(extents > 0)) call expect(address == address_of(place), dtype // label(extents) // ": address")
   end subroutine seen

   !> The script sees a contiguous copy
   subroutine copied(x, place, dtype, extents)
      type(torch_arg), target :: x
      type(c_ptr), intent(in) :: place
      character(*), intent(in) :: dtype
      integer, intent(in) :: extents(:)

      integer(int64) :: address

      call formed(x, dtype, extents, address)
      call expect(address /= address_of(place), dtype // label(extents) // ": copied")
   end subroutine copied

   !> Type, extents and strides are right
   subroutine formed(x, dtype, extents, address, strides)
      type(torch_arg), target :: x
      character(*), intent(in) :: dtype
      integer, intent(in) :: extents(:)
      integer(int64), intent(out) :: address
      integer(int64), intent(in), optional :: strides(:)

      type(torch_results) :: results
      character(:), allocatable :: text, errmsg
      integer(int64), pointer :: found(:)
      integer :: stat

      address = 0
      call model%call("look", [x], results, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, dtype // label(extents) // ": described", errmsg)
      if (stat /= 0) return
      call results%scalar("address", address)
      call results%scalar("dtype", text)
      call expect(text == dtype, dtype // label(extents) // ": type is " // text)
      call results%to_array("shape", found)
      call expect(size(found) == size(extents), dtype // label(extents) // ": rank")
      if (size(found) /= size(extents)) return
      call expect(all(found == extents), dtype // label(extents) // ": extents")
      if (.not. present(strides) .or. any(extents == 0)) return
      call results%to_array("strides", found)
      call expect(all(found == strides .or. extents == 1), dtype // label(extents) // ": strides")
   end subroutine formed

   !> The call says no, and why
   subroutine refused(x, code, what)
      type(torch_arg), target :: x
      integer, intent(in) :: code
      character(*), intent(in) :: what

      type(torch_results) :: results
      integer :: stat

      call model%call("look", [x], results, stat=stat)
      call expect_status(stat, code, what // " is refused")
   end subroutine refused

   function label(extents) result(text)
      integer, intent(in) :: extents(:)
      character(:), allocatable :: text

      character(80) :: buffer

      write (buffer, '(" (", *(i0, :, ","))') extents
      text = trim(buffer) // ")"
   end function label
end program test_describe
