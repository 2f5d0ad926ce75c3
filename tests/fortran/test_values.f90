! SPDX-License-Identifier: MIT
!> Tensors are values: in expressions, procedures, arrays and types of users they are right, and none stays.
program test_values
   use arrays, only : values_in_arrays
   use assignment, only : values_in_assignment
   use associates, only : values_of_associate
   use check, only : finish
   use expressions, only : values_in_expressions
   use functions, only : values_in_functions
   use types, only : values_in_types
   use with_lists, only : values_without_names
   implicit none

   call values_in_expressions()
   call values_in_functions()
   call values_in_arrays()
   call values_in_types()
   call values_in_assignment()
   call values_of_associate()
   call values_without_names()
   call finish()
end program test_values
