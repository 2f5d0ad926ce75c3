! SPDX-License-Identifier: MIT
!> Tensors in expressions: wherever Fortran takes a value, results of operations are right, and none stays.
module expressions
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : expect
   use ftn_pytorch
   use passes, only : are, five, is, make, run, three
   implicit none
   public

   type :: named
      integer :: number = 0
      type(torch_tensor) :: value
   end type named
   type :: tree
      type(named) :: root
      type(torch_tensor) :: leaves(2)
   end type tree

   type(torch_tensor), save :: of_module

contains

   function number_of(tensor) result(number)
      type(torch_tensor), intent(in) :: tensor
      integer :: number

      real(real64) :: value

      call tensor%item(value)
      number = nint(value)
   end function number_of

   subroutine product_of_two()
      type(torch_tensor) :: c

      c = three*five
      call is(c, 15)
      c = c - three
      call is(c, 12)
   end subroutine product_of_two

   subroutine all_operators()
      type(torch_tensor) :: c

      c = three*five + 2.0_real32*three**2
      call is(c, 33)
      c = -(three + five)*(three - five)*2.0_real64 + 1
      call is(c, 33)
      c = 2*(3*(three + (five - (three*five)*(five*three)))) - 1
      call is(c, -1303)
      c = (five - 1)/2 + 6/three
      call is(c, 4)
      c = 2**three - (1 - five)
      call is(c, 12)
   end subroutine all_operators

   subroutine comparisons()
      type(torch_tensor) :: c
      logical :: holds

      c = three < five
      call c%item(holds)
      call expect(holds, "3 < 5")
      c = three*five >= 15
      call c%item(holds)
      call expect(holds, "3*5 >= 15")
      c = 3 /= three
      call c%item(holds)
      call expect(.not. holds, "not 3 /= 3")
   end subroutine comparisons

   subroutine sum_that_grows()
      type(torch_tensor) :: total
      integer :: i

      total = three*0
      do i = 1, 10
         total = total + three
         call is(total, 3*i)
      end do
   end subroutine sum_that_grows

   subroutine condition()
      if (number_of(torch_sum(three)) <= 0) call expect(.false., "a sum in a condition")
      if (number_of(three*five) > 15) call expect(.false., "a product in a condition")
      if (number_of(three*five + three) /= 18) call expect(.false., "two operations in a condition")
   end subroutine condition

   subroutine loop_condition()
      type(torch_tensor) :: c

      c = three*0
      do while (number_of(five - c) > 0)
         c = c + 1
      end do
      call is(c, 5)
   end subroutine loop_condition

   subroutine numbers_of_the_language()
      integer, allocatable :: array(:)
      character(4) :: text
      integer :: i, times

      write (text, "(i0)") number_of(three + five)
      call expect(text == "8", "a value in an output list")
      select case (number_of(three*five))
      case (15)
         times = 0
      case default
         times = -1
      end select
      do i = 1, number_of(three + five)
         times = times + 1
      end do
      call expect(times == 8, "a value as bound of a loop, and in a selection")
      allocate (array(number_of(three*three)))
      call expect(size(array) == 9, "a value as extent")
   end subroutine numbers_of_the_language

   subroutine elements()
      type(torch_tensor) :: t(3), r(3)
      integer :: i, j

      do i = 1, 3
         call make(t(i), i)
      end do
      j = 2
      r(1) = t(1)*t(j)
      r(j) = t(j)*t(3) + r(1)
      r(3) = r(j)*r(1)
      call are(r, [2, 8, 16])
      r(3) = r(3) + r(3)
      call is(r(3), 32)
      if (t(1)%is_set()) call t%free()
   end subroutine elements

   subroutine components()
      type(named) :: u, v
      type(tree) :: oak

      u%value = three
      v%value = five
      oak%root%value = u%value*v%value
      oak%leaves(1) = oak%root%value + u%value
      oak%leaves(2) = oak%leaves(1)*oak%leaves(1)
      oak%root%value = oak%root%value + 1
      call is(oak%root%value, 16)
      call are(oak%leaves, [18, 324])
   end subroutine components

   subroutine variable_of_a_module()
      of_module = three*five
      of_module = of_module + 1
      call is(of_module*2, 32)
      call is(of_module, 16)
   end subroutine variable_of_a_module

   subroutine pointer_to_a_tensor()
      type(torch_tensor), target :: a
      type(torch_tensor), pointer :: p

      a = three
      p => a
      p = p*2
      call is(a, 6)
      call is(three, 3)
      p => a
      call is(p*a, 36)
   end subroutine pointer_to_a_tensor

   subroutine name_for_a_variable()
      type(named) :: u

      u%value = three*five
      associate (value => u%value)
         call is(value*value, 225)
         value = value + 1
      end associate
      call is(u%value, 16)
   end subroutine name_for_a_variable

   subroutine tensor_of_a_block()
      block
         type(torch_tensor) :: c, x(2)

         c = three*five
         x(1) = c
         x(2) = c + 1
         call are(x, [15, 16])
      end block
   end subroutine tensor_of_a_block

   subroutine class_container()
      class(torch_tensor), allocatable :: x
      class(*), allocatable :: anything
      type(torch_tensor) :: c

      allocate (torch_tensor :: x)
      select type (x)
      type is (torch_tensor)
         x = three*five
         call is(x + 1, 16)
         call is(x, 15)
      end select
      allocate (torch_tensor :: anything)
      select type (anything)
      type is (torch_tensor)
         anything = three + five
         c = anything
      end select
      deallocate (x, anything)
      call is(c, 8)
   end subroutine class_container

   subroutine kinds_of_scalars()
      type(torch_tensor) :: c

      c = three + 1_int32
      c = 1.0_real32 + c
      c = c*2.0_real64
      call is(c, 10)
      c = c + 1_int8 + 1_int16 + 1_int64
      call is(c, 13)
   end subroutine kinds_of_scalars

   subroutine one_of_two()
      type(torch_tensor) :: c

      c = torch_where(three > five, three, five)
      call is(c, 5)
      c = torch_where(three*2 > five, three*five, five)
      call is(c, 15)
   end subroutine one_of_two

   subroutine values_in_expressions()
      call run("product", product_of_two)
      call run("operators", all_operators)
      call run("comparisons", comparisons)
      call run("sum that grows", sum_that_grows)
      call run("condition", condition)
      call run("condition of a loop", loop_condition)
      call run("numbers of the language", numbers_of_the_language)
      call run("elements", elements)
      call run("components", components)
      call run("variable of a module", variable_of_a_module)
      call run("pointer", pointer_to_a_tensor)
      call run("associate of a variable", name_for_a_variable)
      call run("block", tensor_of_a_block)
      call run("class container", class_container)
      call run("kinds of scalars", kinds_of_scalars)
      call run("where", one_of_two)
   end subroutine values_in_expressions
end module expressions
