! SPDX-License-Identifier: MIT
!> associate names an expression. gfortran 12 does that wrongly for types with allocatable components: it releases the
!> components of the name before the name has a value. So torch_tensor has none.
module associates
   use ftn_pytorch
   use passes, only : five, is, run, three
   implicit none
   public

contains

   subroutine name_for_an_expression()
      associate (value => three*five)
         call is(value, 15)
         call is(value + value, 30)
         call is(value, 15)
      end associate
   end subroutine name_for_an_expression

   subroutine values_of_associate()
      call run("associate of an expression", name_for_an_expression)
   end subroutine values_of_associate
end module associates
