! SPDX-License-Identifier: MIT
!> Arrays of every kind and rank go into tensors, lists and results, and come back, through memory that is never copied
!> unless copy_to was asked for.
program test_kinds
   use, intrinsic :: iso_c_binding, only : c_bool, c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : address_of, expect, expect_status, finish, script, with_descriptors
   use ftn_pytorch
   implicit none

   !> Equality of all kinds, logicals included
   interface same_value
      procedure :: same_r32
      procedure :: same_r64
      procedure :: same_i8
      procedure :: same_i16
      procedure :: same_i32
      procedure :: same_i64
      procedure :: same_c32
      procedure :: same_c64
      procedure :: same_l8
   end interface same_value

   type(torch_pymodule) :: model

   call model%load(script("kinds.py"))
   call go_through_r32()
   call go_through_r64()
   call go_through_i8()
   call go_through_i16()
   call go_through_i32()
   call go_through_i64()
   call go_through_c32()
   call go_through_c64()
   call go_through_l8()
   call finish()

contains

   function same(a, b)
      type(c_ptr), intent(in) :: a, b
      logical :: same

      same = address_of(a) == address_of(b)
   end function same

   !> Whether a pointer to a section was made, as it must be unless the compiler cannot
   function pointed(stat, what)
      integer, intent(in) :: stat
      character(*), intent(in) :: what
      logical :: pointed

      pointed = with_descriptors()
      call expect_status(stat, merge(FTN_PYTORCH_OK, FTN_PYTORCH_ERR_STRIDE, pointed), what // ": pointer to a section")
   end function pointed

   elemental function same_r32(a, b) result(same)
      real(real32), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_r32

   elemental function same_r64(a, b) result(same)
      real(real64), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_r64

   elemental function same_i8(a, b) result(same)
      integer(int8), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_i8

   elemental function same_i16(a, b) result(same)
      integer(int16), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_i16

   elemental function same_i32(a, b) result(same)
      integer(int32), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_i32

   elemental function same_i64(a, b) result(same)
      integer(int64), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_i64

   elemental function same_c32(a, b) result(same)
      complex(real32), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_c32

   elemental function same_c64(a, b) result(same)
      complex(real64), intent(in) :: a, b
      logical :: same

      same = a == b
   end function same_c64

   elemental function same_l8(a, b) result(same)
      logical(c_bool), intent(in) :: a, b
      logical :: same

      same = a .eqv. b
   end function same_l8

   subroutine go_through_r32()
      character(*), parameter :: dtype = "float32"
      real(real32), parameter :: one = 1
      real(real32), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      real(real32), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      real(real32), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_r32

   subroutine go_through_r64()
      character(*), parameter :: dtype = "float64"
      real(real64), parameter :: one = 1
      real(real64), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      real(real64), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      real(real64), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_r64

   subroutine go_through_i8()
      character(*), parameter :: dtype = "int8"
      integer(int8), parameter :: one = 1
      integer(int8), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      integer(int8), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      integer(int8), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_i8

   subroutine go_through_i16()
      character(*), parameter :: dtype = "int16"
      integer(int16), parameter :: one = 1
      integer(int16), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      integer(int16), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      integer(int16), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_i16

   subroutine go_through_i32()
      character(*), parameter :: dtype = "int32"
      integer(int32), parameter :: one = 1
      integer(int32), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      integer(int32), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      integer(int32), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_i32

   subroutine go_through_i64()
      character(*), parameter :: dtype = "int64"
      integer(int64), parameter :: one = 1
      integer(int64), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      integer(int64), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      integer(int64), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_i64

   subroutine go_through_c32()
      character(*), parameter :: dtype = "complex64"
      complex(real32), parameter :: one = 1
      complex(real32), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      complex(real32), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      complex(real32), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_c32

   subroutine go_through_c64()
      character(*), parameter :: dtype = "complex128"
      complex(real64), parameter :: one = 1
      complex(real64), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      complex(real64), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      complex(real64), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_c64

   subroutine go_through_l8()
      character(*), parameter :: dtype = "bool"
      logical(c_bool), parameter :: one = .true.
      logical(c_bool), target :: x(3, 2, 1, 4, 1, 5, 2), y(3, 2, 1, 4, 1, 5, 2)
      logical(c_bool), pointer :: p1(:), p2(:, :), p3(:, :, :), p4(:, :, :, :), p5(:, :, :, :, :)
      logical(c_bool), pointer :: p6(:, :, :, :, :, :), p7(:, :, :, :, :, :, :)
      include "tensor_kind.inc"
   end subroutine go_through_l8
end program test_kinds
