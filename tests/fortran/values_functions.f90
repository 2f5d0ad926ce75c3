! SPDX-License-Identifier: MIT
!> Tensors as arguments and results of the procedures of a user: an argument may be used any number of times, whether it
!> is a variable or an expression, and a result outlives what it was computed from.
module functions
   use check, only : expect
   use ftn_pytorch
   use passes, only : are, five, is, make, run, three
   implicit none
   public

   type :: model
      type(torch_tensor) :: weight
   contains
      procedure :: forward
   end type model

contains

   subroutine use_often(tensor, wanted)
      type(torch_tensor), intent(in) :: tensor
      integer, intent(in) :: wanted

      type(torch_tensor) :: y, z

      y = tensor*2
      call is(y, 2*wanted)
      z = tensor*tensor
      call is(z, wanted**2)
      z = z - tensor*tensor + tensor
      call is(z, wanted)
      call is(tensor + 1, wanted + 1)
      y = tensor
      call is(y, wanted)
      call is(tensor, wanted)
   end subroutine use_often

   subroutine use_class(tensor, wanted)
      class(torch_tensor), intent(in) :: tensor
      integer, intent(in) :: wanted

      call is(tensor*2, 2*wanted)
      call is(tensor*tensor, wanted**2)
      call expect(tensor%is_set(), "an argument of a class is set")
   end subroutine use_class

   subroutine use_value(tensor, wanted)
      type(torch_tensor), value :: tensor
      integer, intent(in) :: wanted

      call is(tensor*2, 2*wanted)
      call is(tensor, wanted)
   end subroutine use_value

   subroutine use_optional(wanted, tensor)
      integer, intent(in) :: wanted
      type(torch_tensor), intent(in), optional :: tensor

      if (present(tensor)) call is(tensor*2, 2*wanted)
   end subroutine use_optional

   subroutine use_not(tensor)
      type(torch_tensor), intent(in) :: tensor

      if (.not. tensor%is_set()) call expect(.false., "an argument is set")
   end subroutine use_not

   subroutine use_two(s, t)
      type(torch_tensor), intent(in) :: s, t

      integer :: i

      do i = 1, 3
         call use_often(s*t, 120)
         call use_often(s, 15)
         call use_often(t, 8)
      end do
      call is(square(s + t), 529)
      call is(s, 15)
   end subroutine use_two

   subroutine square_into(output, x)
      type(torch_tensor), intent(out) :: output
      type(torch_tensor), intent(in) :: x

      output = x*x
   end subroutine square_into

   subroutine add_to(tensor, x)
      type(torch_tensor), intent(inout) :: tensor
      type(torch_tensor), intent(in) :: x

      tensor = tensor + x
   end subroutine add_to

   function square(x) result(r)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: r

      r = x*x
   end function square

   function same(x) result(r)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: r

      r = x
   end function same

   function in_steps(x, y) result(r)
      type(torch_tensor), intent(in) :: x, y
      type(torch_tensor) :: r

      type(torch_tensor) :: difference

      difference = x - y
      r = difference*difference
      r = r + difference
      r = torch_sum(r) + 0
   end function in_steps

   recursive function power_of(x, n) result(r)
      type(torch_tensor), intent(in) :: x
      integer, intent(in) :: n
      type(torch_tensor) :: r

      if (n == 1) then
         r = x
      else
         r = x*power_of(x, n - 1)
      end if
   end function power_of

   function multiples(x, n) result(r)
      type(torch_tensor), intent(in) :: x
      integer, intent(in) :: n
      type(torch_tensor) :: r(n)

      integer :: i

      do i = 1, n
         r(i) = x*i
      end do
   end function multiples

   impure elemental function twice(x) result(r)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: r

      r = x*2
   end function twice

   function allocated_square(x) result(r)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor), allocatable :: r

      allocate (r)
      r = x*x
   end function allocated_square

   function allocated_list(x) result(r)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor), allocatable :: r(:)

      allocate (r(2))
      r(1) = x
      r(2) = x + x
   end function allocated_list

   function forward(self, x) result(r)
      class(model), intent(in) :: self
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: r

      r = self%weight*x + self%weight
   end function forward

   recursive subroutine go_down(level, tensor)
      integer, intent(in) :: level
      type(torch_tensor), intent(in) :: tensor

      type(torch_tensor) :: local
      integer :: padding(level + 1)

      padding = level
      local = tensor + padding(1)
      if (level > 0) call go_down(level - 1, tensor*1)
      call is(local, 15 + level)
      call is(tensor, 15)
   end subroutine go_down

   subroutine arguments()
      call is(three*five, 15)
      call use_often(three*five, 15)
      call use_often(three*five + three, 18)
      call use_often(three, 3)
      call use_not(three*five)
      call use_optional(15, three*five)
      call use_optional(0)
      call use_two(three*five, three + five)
   end subroutine arguments

   subroutine arguments_of_a_class()
      call use_class(three*five, 15)
      call use_class(three, 3)
   end subroutine arguments_of_a_class

   subroutine arguments_by_value()
      call use_value(three*five, 15)
      call use_value(three, 3)
      call is(three, 3)
   end subroutine arguments_by_value

   subroutine arguments_of_contained_procedures()
      type(torch_tensor) :: loss

      call contained(three*five)
      loss = loss_of(three*five, five)
      call is(loss, 115)
   contains
      subroutine contained(tensor)
         type(torch_tensor), intent(in) :: tensor

         type(torch_tensor) :: y, z

         y = tensor*2
         z = tensor*3
         z = z + y
         call is(z, 75)
         y = tensor
         call is(y, 15)
      end subroutine contained

      function loss_of(p, y) result(r)
         type(torch_tensor), intent(in) :: p, y
         type(torch_tensor) :: r

         r = (p - y)*(p - y)
         r = r + p
      end function loss_of
   end subroutine arguments_of_contained_procedures

   subroutine arguments_that_change()
      type(torch_tensor) :: c

      call square_into(c, three)
      call is(c, 9)
      c = three
      call add_to(c, five)
      call is(c, 8)
      call add_to(c, three*five)
      call is(c, 23)
      call is(three, 3)
   end subroutine arguments_that_change

   subroutine results()
      type(torch_tensor) :: c

      c = square(three)
      call is(c, 9)
      c = square(square(three)*five) + square(three*five)
      call is(c, 2250)
      c = in_steps(three*five, five)
      call is(c, 110)
      c = power_of(three, 5)
      call is(c, 243)
      c = same(three)*2
      call is(c, 6)
      call use_often(square(three), 9)
   end subroutine results

   subroutine results_that_are_arrays()
      type(torch_tensor) :: x(3)

      x = multiples(three, 3)
      call are(x, [3, 6, 9])
      call are(multiples(five, 2), [5, 10])
   end subroutine results_that_are_arrays

   subroutine results_by_element()
      type(torch_tensor) :: c, x(2), y(2)

      c = twice(three*five) + twice(twice(three))
      call is(c, 42)
      x(1) = three
      x(2) = five
      y = twice(x)
      call are(y, [6, 10])
   end subroutine results_by_element

   subroutine results_that_are_allocatable()
      type(torch_tensor) :: c, x(2)

      c = allocated_square(three) + five
      call is(c, 14)
      x = allocated_list(three)
      call are(x, [3, 6])
   end subroutine results_that_are_allocatable

   subroutine results_of_methods()
      type(model) :: net

      net%weight = five
      call is(net%forward(three), 20)
      call use_often(net%forward(three*five), 80)
      net%weight = net%weight + 1
      call is(net%forward(three), 24)
   end subroutine results_of_methods

   subroutine local_that_is_handed_out()
      type(torch_tensor) :: c

      call hand_out(c)
      call is(c, 15)
   contains
      subroutine hand_out(output)
         type(torch_tensor), intent(inout) :: output

         type(torch_tensor) :: local

         local = three*five
         output = local
      end subroutine hand_out
   end subroutine local_that_is_handed_out

   subroutine many_frames()
      integer :: level

      do level = 0, 6, 3
         call go_down(level, three*five)
      end do
   end subroutine many_frames

   subroutine values_in_functions()
      call run("arguments", arguments)
      call run("arguments of a class", arguments_of_a_class)
      call run("arguments by value", arguments_by_value)
      call run("arguments of contained procedures", arguments_of_contained_procedures)
      call run("arguments that change", arguments_that_change)
      call run("results", results)
      call run("results that are arrays", results_that_are_arrays)
      call run("results by element", results_by_element)
      call run("results that are allocatable", results_that_are_allocatable)
      call run("results of methods", results_of_methods)
      call run("a local that is handed out", local_that_is_handed_out)
      call run("many frames", many_frames)
   end subroutine values_in_functions
end module functions
