! SPDX-License-Identifier: MIT
! Ends with exit code 0 if type(*), dimension(..) arguments reach C as Fortran 2018 says.
program descriptor
   use, intrinsic :: iso_c_binding, only: c_double, c_int
   implicit none

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
      function is_text(x) result(yes) bind(c, name="is_text")
         import :: c_int
         implicit none
         type(*), dimension(..), target :: x
         integer(c_int) :: yes
      end function is_text
   end interface

   real(c_double), allocatable, target :: none(:), array(:, :)

   allocate (array(5, 4))
   if (is_null(none) == 0) stop 1
   if (is_section(array(4:1:-2, 2:4)) == 0) stop 2
   if (is_text("name") == 0) stop 3
end program descriptor
