! SPDX-License-Identifier: MIT
!> Types that contain tensors: their copies are other names for the same tensors, and changing one changes no other.
!> Without optimisation flang 19 forgets arrays of tensors when a type that contains them is assigned.
module types
   use check, only : expect
   use ftn_pytorch
   use passes, only : are, five, is, run, three
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
   type :: layers
      type(torch_tensor), allocatable :: weights(:)
   end type layers

contains

   function named_square(x) result(u)
      type(torch_tensor), intent(in) :: x
      type(named) :: u

      u%value = x*x
      u%number = 1
   end function named_square

   function handed_on(x) result(u)
      type(torch_tensor), intent(in) :: x
      type(named) :: u

      u = named_square(x)
      u%number = 2
   end function handed_on

   function some_layers(x, n) result(l)
      type(torch_tensor), intent(in) :: x
      integer, intent(in) :: n
      type(layers) :: l

      integer :: i

      allocate (l%weights(n))
      do i = 1, n
         l%weights(i) = x*i
      end do
   end function some_layers

   subroutine copy(to, from)
      type(named), intent(inout) :: to
      type(named), intent(in) :: from

      to = from
   end subroutine copy

   subroutine fill(u, x)
      type(named), intent(out) :: u
      type(torch_tensor), intent(in) :: x

      u%value = x*x
   end subroutine fill

   subroutine copies()
      type(named) :: u, v

      u%value = three*five
      v = u
      v = u
      call is(v%value, 15)
      v%value = v%value + 1
      call is(v%value, 16)
      call is(u%value, 15)
      u = v
      v%value = three
      call is(u%value, 16)
      u = u
      call is(u%value, 16)
      call copy(v, u)
      call copy(v, u)
      call is(v%value*1, 16)
   end subroutine copies

   subroutine copy_that_lives_longer()
      type(named) :: v

      call hand_out(v)
      call is(v%value, 15)
   contains
      subroutine hand_out(output)
         type(named), intent(inout) :: output

         type(named) :: local

         local%value = three*five
         output = local
      end subroutine hand_out
   end subroutine copy_that_lives_longer

   subroutine results()
      type(named) :: u, v, w(3)
      integer :: i

      u = named_square(three)
      call is(u%value, 9)
      u = named_square(u%value)
      call is(u%value, 81)
      u = handed_on(three)
      v = handed_on(five)
      do i = 1, 3
         w(i) = handed_on(three*i)
      end do
      call are([u%value, v%value, w(1)%value, w(2)%value, w(3)%value], [9, 25, 9, 36, 81])
   end subroutine results

   subroutine intent_out()
      type(named) :: u

      call fill(u, five)
      call fill(u, three)
      call is(u%value, 9)
   end subroutine intent_out

   subroutine constructors()
      type(named) :: u

      u = named(3, three)
      u%value = u%value + 1
      call is(u%value, 4)
      call is(three, 3)
      u = named(4, u%value)
      call is(u%value, 4)
      u = named(5, three*five)
      call is(u%value, 15)
      call is(u%value + u%value, 30)
   end subroutine constructors

   subroutine nested()
      type(tree) :: oak, elm

      oak%root%value = three*five
      oak%leaves(2) = three
      elm = oak
      call is(elm%root%value, 15)
      call is(elm%leaves(2), 3)
      call expect(.not. elm%leaves(1)%is_set(), "a component without contents is copied as that")
      elm%root = oak%root
      call is(elm%root%value, 15)
      call is(oak%root%value, 15)
   end subroutine nested

   subroutine arrays_of_types()
      type(named) :: u(2), v(2)

      u(1)%value = three*five
      u(2)%value = three
      v = u
      call are([v(1)%value, v(2)%value], [15, 3])
      v(1) = u(2)
      call is(v(1)%value, 3)
      call is(u(1)%value, 15)
      v = u(2:1:-1)
      call are([v(1)%value, v(2)%value], [3, 15])
   end subroutine arrays_of_types

   subroutine allocatable_types()
      type(named), allocatable :: u(:), v(:), s

      allocate (u(2))
      u(1)%value = three*five
      u(2)%value = three
      v = u
      call is(v(2)%value, 3)
      s = u(1)
      v(1)%value = five
      call is(u(1)%value, 15)
      call is(s%value, 15)
      deallocate (v, s, u)
   end subroutine allocatable_types

   subroutine list_that_grows()
      type(named), allocatable :: list(:)
      type(named) :: u

      allocate (list(0))
      u%value = three
      list = [list, u]
      u%value = five
      list = [list, u]
      u%value = three*five
      list = [list, u]
      call are([list(1)%value, list(2)%value, list(3)%value], [3, 5, 15])
   end subroutine list_that_grows

   subroutine allocatable_components()
      type(layers) :: l, m

      allocate (l%weights(2))
      l%weights(1) = three*five
      l%weights(2) = three
      m = l
      m = l
      call are(m%weights, [15, 3])
      m%weights(1) = five
      call are(l%weights, [15, 3])
      l = some_layers(three, 3)
      call are(l%weights, [3, 6, 9])
   end subroutine allocatable_components

   subroutine without_contents()
      type(named) :: u, v

      v%value = three*five
      v = u
      call expect(.not. v%value%is_set(), "nothing is copied over something")
   end subroutine without_contents

   subroutine all_kinds_of_locals()
      type(named) :: u
      type(named), allocatable :: v(:)
      type(tree) :: oak
      type(layers) :: l
      type(torch_tensor), allocatable :: y(:), z

      allocate (y(2), z, v(3), l%weights(2))
      y(1) = three
      y(2) = five*five
      z = y(1)
      u%value = z*five
      v(3)%value = u%value*2
      oak%leaves(2) = v(3)%value
      l%weights(1) = oak%leaves(2)
      call is(l%weights(1), 30)
   end subroutine all_kinds_of_locals

   subroutine values_in_types()
      call run("copies", copies)
      call run("a copy that lives longer", copy_that_lives_longer)
      call run("results", results)
      call run("intent(out)", intent_out)
      call run("constructors", constructors)
      call run("nested", nested)
      call run("arrays of types", arrays_of_types)
      call run("allocatable types", allocatable_types)
      call run("list that grows", list_that_grows)
      call run("allocatable components", allocatable_components, lost=224)
      call run("without contents", without_contents)
      call run("all kinds of locals", all_kinds_of_locals)
   end subroutine values_in_types
end module types
