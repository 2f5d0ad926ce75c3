! SPDX-License-Identifier: MIT
!> Scopes that end with their variables, and what an outer scope keeps of those inside it.
module warnings_of_scopes
   implicit none
   private

   public :: count_warning, number

   integer, save :: number = 0

contains

   !> Receiver of warnings
   subroutine count_warning(text)
      character(*), intent(in) :: text

      number = number + 1
      print "(a)", text
   end subroutine count_warning
end module warnings_of_scopes

program test_scopes_left
   use check, only : expect, finish
   use ftn_pytorch
   use passes, only : is, make
   use warnings_of_scopes, only : count_warning, number
   implicit none

   type :: holder
      type(torch_scope) :: scope
   end type holder

   type(torch_tensor) :: three

   call ftn_pytorch_on_warning(count_warning)
   call make(three, 3)
   call left_early()
   call kept_from_inside()
   call finish()

contains

   !> Procedures that return between begin and end: scopes end with their variables, quietly
   subroutine left_early()
      type(torch_scope) :: outer
      type(holder), allocatable :: held
      type(torch_tensor) :: a, local, inside

      number = 0
      call outer%begin("outer")
      a = three*2
      call leave(local, inside)
      call expect(.not. (local%is_set() .or. inside%is_set()), "scopes of a procedure end with it")
      call is(a, 6)
      a = three*3
      call outer%end()
      call expect(.not. a%is_set(), "the scope outside is the innermost one again")
      allocate (held)
      call held%scope%begin("held")
      local = three*2
      deallocate (held)
      call expect(.not. local%is_set(), "a scope ends with the variable that holds it")
      call forget_copies()
      call expect(number == 0, "no warning")
   end subroutine left_early

   subroutine leave(local, inside)
      type(torch_tensor), intent(inout) :: local, inside

      type(torch_scope) :: scope, inner

      call scope%begin("left open")
      local = three*2
      call inner%begin("left open, too")
      inside = three*2
      if (local%is_set()) return
      call inner%end()
      call scope%end()
   end subroutine leave

   !> A copy does not own the scope
   subroutine forget_copies()
      type(torch_scope) :: scope
      type(torch_tensor) :: a

      call scope%begin("copied")
      a = three*2
      call copy(scope)
      call is(a, 6)
      call scope%end()
      call expect(.not. a%is_set(), "the scope of the variable that began it")
   end subroutine forget_copies

   subroutine copy(scope)
      type(torch_scope), intent(in) :: scope

      type(torch_scope) :: another

      another = scope
   end subroutine copy

   !> keep of an outer scope takes tensors of the scopes inside it as well
   subroutine kept_from_inside()
      type(torch_scope) :: outer, middle, inner
      type(torch_tensor) :: a, b, c

      call outer%begin("outer")
      call middle%begin("middle")
      call inner%begin("inner")
      a = three*2
      b = three*3
      c = three*4
      call outer%keep(a)
      call middle%keep(b)
      call inner%end()
      call expect(.not. c%is_set(), "what nobody kept is gone")
      call is(b, 9)
      call middle%end()
      call is(b, 9)
      call outer%end()
      call expect(.not. b%is_set(), "what the middle one kept ends with the outer one")
      call is(a, 6)
      call a%free()
   end subroutine kept_from_inside
end program test_scopes_left
