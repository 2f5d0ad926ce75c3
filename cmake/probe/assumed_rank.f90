! SPDX-License-Identifier: MIT
! Ends with exit code 0 if a procedure of Fortran takes arrays of any rank and passes them to C as they are. The C side
! is that of descriptor.f90.
module assumed_rank
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_loc
   implicit none
   private

   public :: look, order

   interface
      function is_null(x) result(yes) bind(c, name="is_null")
         import :: c_int
         implicit none
         type(*), dimension(..), target :: x
         integer(c_int) :: yes
      end function is_null
      function is_section(x) result(yes) bind(c, name="is_section")
         import :: c_int
         implicit none
         type(*), dimension(..), target :: x
         integer(c_int) :: yes
      end function is_section
   end interface

contains

   !> 0: another array; 1: no memory; 2: the section that the C side knows. The two last arguments are there because
   !> gfortran passed lengths of texts wrongly beside type(*)
   subroutine look(array, found, axes, text, ending)
      real(c_double), target :: array(..)
      integer, intent(out) :: found, axes
      character(:), allocatable, intent(inout), optional :: text
      character(*), intent(in), optional :: ending

      found = 0
      if (is_null(array) /= 0) then
         found = 1
      else if (is_section(array) /= 0) then
         found = 2
      end if
      axes = rank(array)
      if (present(text) .and. present(ending)) text = text // ending
   end subroutine look

   !> Extents of a whole array, none of another
   function order(array) result(extents)
      real(c_double), pointer, intent(in) :: array(..)
      integer, allocatable :: extents(:)

      allocate (extents(0))
      if (is_contiguous(array)) extents = shape(array)
   end function order
end module assumed_rank

program assumed
   use, intrinsic :: iso_c_binding, only: c_double
   use assumed_rank, only: look, order
   implicit none

   type :: holder
      real(c_double), allocatable :: x(:, :)
   end type holder

   real(c_double), target :: array(5, 4)
   type(holder), allocatable, target :: none(:)
   character(:), allocatable :: text
   integer :: found, axes

   allocate (none(2))
   text = "any"
   array = 0
   call look(array(4:1:-2, 2:4), found, axes, text, " rank")
   if (found /= 2 .or. axes /= 2 .or. text /= "any rank") stop 1
   call look(none(2)%x, found, axes)
   if (found /= 1 .or. axes /= 2) stop 2
   call look(array(1, 1), found, axes)
   if (found /= 0 .or. axes /= 0) stop 3
   if (any(order(array) /= [5, 4]) .or. size(order(array(::2, :))) /= 0) stop 4
end program assumed
