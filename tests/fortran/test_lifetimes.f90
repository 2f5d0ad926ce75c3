! SPDX-License-Identifier: MIT
!> Outside of scopes a variable owns what it got by from_array, from a maker or from a call: it is released with the
!> variable, and not with copies that the compiler makes. Results of functions have no owner then, and gfortran 11 and
!> 12 miss the elements of array components. The argument says how often each situation is passed through.
module lifetimes
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, script
   use ftn_pytorch
   use passes, only : are, five, is, make, three
   implicit none
   public

   type :: named
      integer :: number = 0
      type(torch_tensor) :: value
   end type named
   type :: fixed
      type(named) :: root
      type(torch_tensor) :: leaves(3)
   end type fixed
   type :: layers
      type(torch_tensor), allocatable :: weights(:)
   end type layers

   type(torch_pymodule), save :: model
   real(real64), save, target :: array(1) = 7

contains

   function wrapped(x) result(r)
      real(real64), intent(inout), target :: x(:)
      type(torch_tensor) :: r

      call r%from_array(x)
   end function wrapped

   function named_three() result(u)
      type(named) :: u

      call make(u%value, 3)
   end function named_three

   function owners(n) result(x)
      integer, intent(in) :: n
      type(torch_tensor), allocatable :: x(:)

      integer :: i

      allocate (x(n))
      do i = 1, n
         call make(x(i), i)
      end do
   end function owners

   subroutine fill(tensor, value)
      type(torch_tensor), intent(out) :: tensor
      integer, intent(in) :: value

      call make(tensor, value)
   end subroutine fill

   subroutine fill_named(u, value)
      type(named), intent(out) :: u
      integer, intent(in) :: value

      call make(u%value, value)
   end subroutine fill_named

   subroutine of_an_array()
      type(torch_tensor) :: a

      call a%from_array(array)
      call is(a, 7)
   end subroutine of_an_array

   subroutine of_makers()
      type(torch_tensor) :: a, b

      call a%eye(1)
      call is(a, 1)
      call b%zeros_like(a)
      call is(b, 0)
   end subroutine of_makers

   subroutine of_a_call()
      type(torch_tensor) :: output
      type(torch_tensor_wrap) :: inputs

      call inputs%create()
      call inputs%add_array(array)
      call model%forward(inputs, output)
      call is(output, 14)
   end subroutine of_a_call

   subroutine new_contents()
      type(torch_tensor) :: a

      call make(a, 1)
      call make(a, 2)
      call is(a, 2)
      call a%from_array(array)
      call is(a, 7)
      call a%zeros_like(three)
      call is(a, 0)
   end subroutine new_contents

   subroutine freed_by_hand()
      type(torch_tensor) :: a, b, c

      call make(a, 2)
      b = a
      c = b
      call a%free()
      call is(c, 2)
      call b%free()
      call is(c, 2)
      call c%free()
   end subroutine freed_by_hand

   subroutine results_of_functions()
      type(torch_tensor) :: a, x(3)
      type(named) :: u

      a = wrapped(array)
      call is(a, 7)
      call is(wrapped(array), 7)
      x = owners(3)
      call are(x, [1, 2, 3])
      u = named_three()
      call is(u%value, 3)
   end subroutine results_of_functions

   subroutine copies_of_a_type()
      type(named) :: u, v

      call make(u%value, 4)
      v = u
      call is(v%value, 4)
      call short_lived(u)
      call is(u%value, 4)
   end subroutine copies_of_a_type

   subroutine short_lived(u)
      type(named), intent(in) :: u

      type(named) :: local, other
      type(named), allocatable :: list(:)

      local = u
      other = local
      call is(other%value, 4)
      allocate (list(2), source=other)
      call is(list(2)%value, 4)
   end subroutine short_lived

   subroutine fixed_arrays()
      type(fixed) :: f
      type(fixed), allocatable :: g(:)
      integer :: i

      do i = 1, 3
         call make(f%leaves(i), i)
      end do
      call make(f%root%value, 4)
      call are(f%leaves, [1, 2, 3])
      allocate (g(2))
      call make(g(2)%leaves(3), 5)
      call is(g(2)%leaves(3), 5)
      call f%leaves%free()
      call g(2)%leaves%free()
   end subroutine fixed_arrays

   subroutine allocatable_arrays()
      type(torch_tensor), allocatable :: x(:), y(:), s
      type(layers) :: l
      integer :: i

      allocate (x(2), s, l%weights(2))
      do i = 1, 2
         call make(x(i), i)
         call make(l%weights(i), 10*i)
      end do
      call make(s, 5)
      call move_alloc(x, y)
      call are(y, [1, 2])
      deallocate (y)
      call are(l%weights, [10, 20])
      call is(s, 5)
   end subroutine allocatable_arrays

   subroutine intent_out()
      type(torch_tensor) :: a
      type(named) :: u

      call fill(a, 1)
      call fill(a, 2)
      call is(a, 2)
      call fill_named(u, 3)
      call fill_named(u, 4)
      call is(u%value, 4)
   end subroutine intent_out

   subroutine expressions()
      type(torch_scope) :: scope
      type(torch_tensor) :: y

      call scope%begin("expressions")
      y = torch_sum((three*five - 1)**2/2.0_real32)
      call scope%end()
      call expect(.not. y%is_set(), "the scope has ended")
   end subroutine expressions
end module lifetimes

program test_lifetimes
   use, intrinsic :: iso_fortran_env, only : compiler_version
   use check, only : finish, script
   use lifetimes
   use passes, only : run
   implicit none

   character(12) :: word
   integer :: times

   times = 2000
   call get_command_argument(1, word)
   if (word /= "") read (word, *) times
   call model%load(script("look.py"))
   call run("expressions in scopes", expressions, in_scopes=.false., times=10*times)
   call run("of an array", of_an_array, in_scopes=.false., times=times)
   call run("of makers", of_makers, in_scopes=.false., times=times)
   call run("of a call", of_a_call, in_scopes=.false., times=times)
   call run("new contents", new_contents, in_scopes=.false., times=times)
   call run("freed by hand", freed_by_hand, in_scopes=.false., times=times)
   call run("results of functions", results_of_functions, times=times)
   ! gfortran copies the tensors in a type, others assign them one by one: three names that stay
   call run("copies of a type", copies_of_a_type, in_scopes=.false., times=times, &
      lost=merge(0, 1500, index(compiler_version(), "GCC") > 0))
   call run("fixed arrays", fixed_arrays, in_scopes=.false., times=times)
   call run("allocatable arrays", allocatable_arrays, in_scopes=.false., times=times)
   call run("intent(out)", intent_out, in_scopes=.false., times=times)
   call finish()
end program test_lifetimes
