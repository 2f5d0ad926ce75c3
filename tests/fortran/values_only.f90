! SPDX-License-Identifier: MIT
!> What comes with the type: assignment and operators without an entry in a list of `use, only`, in scopes and outside.
module only_the_type
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : compiler_version, int8, int16, int32, int64, real32, real64
   use check, only : expect
   use ftn_pytorch, only : torch_tensor
   use passes, only : five, is, three
   implicit none
   public

   type :: cell
      integer :: number = 0
      type(torch_tensor) :: value
   end type cell

   type :: holder
      type(cell) :: inner
      type(torch_tensor) :: several(2)
      type(torch_tensor), allocatable :: one
   end type holder

contains

   subroutine written()
      type(torch_tensor) :: q
      real(real64), target :: array(1)

      array = -1
      call q%from_array(array)
      q = three*five
      call expect(array(1) == 15, "a result goes into the array")
      q = five
      call expect(array(1) == 5, "another tensor goes into the array")
      q = power_of(three)
      call expect(array(1) == 9, "the result of a function goes into the array")
      q = (q)
      call expect(array(1) == 9, "and so does the tensor itself")
   end subroutine written

   function power_of(x) result(y)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: y

      y = x**2
   end function power_of

   subroutine written_in_components()
      type(holder) :: h
      real(real64), target :: a(1), b(1), c(1)

      a = -1
      b = -1
      c = -1
      allocate (h%one)
      call h%inner%value%from_array(a)
      call h%several(2)%from_array(b)
      call h%one%from_array(c)
      h%inner%value = three + 1
      h%several(2) = 2*three
      h%one = three/five
      call expect(a(1) == 4, "a component of a component")
      call expect(b(1) == 6, "an element of a component")
      call expect(abs(c(1) - 0.6d0) < 1d-12, "an allocatable component")
   end subroutine written_in_components

   subroutine other_names()
      type(torch_tensor) :: x, y

      x = three
      y = x
      call y%free()
      call is(x, 3)
      x = x + x
      call is(x, 6)
      call is(three, 3)
   end subroutine other_names

   subroutine copies_of_types()
      type(cell) :: u, v
      type(cell), allocatable :: list(:)
      real(real64), target :: array(1)

      array = -1
      u%value = three*five
      call v%value%from_array(array)
      v = u
      call is(v%value, 15)
      ! gfortran copies the tensors in a type, others assign them one by one
      if (index(compiler_version(), "GCC") > 0) call expect(array(1) < 0, "a copy of a type is another name")
      allocate (list(0))
      list = [list, u]
      u%value = three
      list = [list, u]
      call is(list(1)%value, 15)
      call is(list(2)%value, 3)
   end subroutine copies_of_types

   subroutine all_kinds()
      call is(three + 2_int8, 5)
      call is(2_int16 - five, -3)
      call is(three*2_int32, 6)
      call is(6_int64/three, 2)
      call is(three**2.0_real32, 9)
      call is(2.0_real64 + three, 5)
      call truth(three == 3)
      call truth(2 /= three)
      call truth(three < 4.0)
      call truth(3d0 <= three)
      call truth(five > three)
      call truth(five >= 5_int64)
      call is(-five, -5)
      call truth(three + (1.0_real32, 0.0_real32) == 4)
      call is((.true._c_bool + three), 4)
   end subroutine all_kinds

   subroutine truth(x)
      type(torch_tensor), intent(in) :: x

      logical :: value

      value = .false.
      call x%item(value)
      call expect(value, "a comparison")
   end subroutine truth
end module only_the_type

!> Lists that name what comes with the type go on compiling, and arrays are assigned with one
module with_lists
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect
   use ftn_pytorch, only : assignment(=), operator(+), operator(-), operator(*), operator(/), operator(**), &
      operator(==), operator(/=), operator(<), operator(<=), operator(>), operator(>=), torch_atan2, torch_clamp, &
      torch_clamp_max, torch_square, torch_tensor, torch_where
   use only_the_type, only : all_kinds, copies_of_types, other_names, written, written_in_components
   use passes, only : are, five, run, three
   implicit none
   public

contains

   subroutine arrays()
      type(torch_tensor) :: x(2), y(2)
      real(real64), target :: array(1)

      call x(2)%from_array(array)
      x = [three, five]
      call expect(array(1) == 5, "an element of an array goes into its array")
      y = x + three
      call are(y, [6, 8])
      y = 2*x - y
      call are(y, [0, 2])
      y = torch_square(-x)
      call are(y, [9, 25])
      y = torch_square(torch_atan2(x, x)/torch_atan2(five, five))
      call are(y, [1, 1])
      y = torch_clamp(x, [0d0, 0d0], [2d0, 4d0])
      call are(y, [2, 4])
      y = torch_where(x > 4, torch_clamp_max(x, 1), x)
      call are(y, [3, 1])
   end subroutine arrays

   subroutine values_without_names()
      call run("written", written)
      call run("written in components", written_in_components)
      call run("other names", other_names)
      call run("copies of types", copies_of_types)
      call run("all kinds", all_kinds)
      call run("arrays", arrays)
   end subroutine values_without_names
end module with_lists
