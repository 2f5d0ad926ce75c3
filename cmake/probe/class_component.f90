! SPDX-License-Identifier: MIT
! Ends with exit code 0 if a component of a class array reaches type(*), dimension(..) with the stride of the dynamic
! type, and if the array is still what it was.
module class_component
   use, intrinsic :: iso_c_binding, only: c_double, c_int
   implicit none
   private

   public :: child, parent, stride_of, stride_of_second

   type :: parent
      real(c_double) :: first = 1, second = 2
   end type parent
   type, extends(parent) :: child
      real(c_double) :: third = 3
   end type child

   interface
      function stride_of(x) result(stride) bind(c, name="stride_of")
         import :: c_int
         implicit none
         type(*), dimension(..), target :: x
         integer(c_int) :: stride
      end function stride_of
   end interface

contains

   function stride_of_second(array) result(stride)
      class(parent), target, intent(inout) :: array(:)
      integer(c_int) :: stride

      stride = stride_of(array%second)
   end function stride_of_second
end module class_component

program component
   use class_component, only: child, parent, stride_of, stride_of_second
   implicit none
   class(parent), allocatable, target :: array(:)
   integer :: bytes

   allocate (child :: array(4))
   bytes = storage_size(child())/8
   if (stride_of_second(array) /= bytes) stop 1
   if (stride_of(array%second) /= bytes) stop 2
   if (any([array(1)%second, array(4)%second] /= 2)) stop 3
end program component
