! SPDX-License-Identifier: MIT
!> Scopes: what is made in one ends with it, what is kept does not, and forgetting an end is told.
module warnings
   implicit none
   private

   public :: collect, texts, number

   integer, save :: number = 0
   character(:), allocatable, save :: texts

contains

   !> Receiver of warnings
   subroutine collect(text)
      character(*), intent(in) :: text

      number = number + 1
      texts = text
   end subroutine collect
end module warnings

program test_scopes
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish
   use ftn_pytorch
   use passes, only : is, make
   use warnings, only : collect, number, texts
   implicit none

   type :: named
      type(torch_tensor) :: value
   end type named

   type(torch_tensor) :: three

   call ftn_pytorch_on_warning(collect)
   call make(three, 3)
   call end_of_a_scope()
   call kept()
   call kept_in_vain()
   call nested()
   call misused()
   call never_ended()
   call new_contents()
   call gradients()
   call gradients_misused()
   call failures_in_expressions()
   call change_in_place()
   call many_results()
   call finish()

contains

   subroutine end_of_a_scope()
      type(torch_scope) :: scope
      type(torch_tensor) :: a, unnamed
      type(named) :: copy
      character(:), allocatable :: errmsg
      real(real64) :: value
      integer :: stat

      call scope%begin("step")
      a = three*2
      copy%value = a
      call is(copy%value, 6)
      call scope%end()
      call expect(.not. (a%is_set() .or. copy%value%is_set()), "tensors of a scope end with it")
      call a%item(value, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "a tensor whose scope has ended", errmsg)
      call expect_text(errmsg, 'of the scope "step", which has ended', "the scope is named")
      call expect_text(errmsg, "scope%keep", "what to do")
      a = copy%value + three
      call a%item(value, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "an expression with it", errmsg, '"step"')
      call scope%begin()
      unnamed = three*2
      call scope%end()
      call unnamed%item(value, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "of a scope, which has ended", "a scope without a name")
      call is(three, 3)
   end subroutine end_of_a_scope

   subroutine kept()
      type(torch_scope) :: scope
      type(torch_tensor) :: a, b

      call scope%begin("keeping")
      a = three*2
      b = a
      call scope%keep(a)
      call scope%keep(three)
      call scope%end()
      call is(a, 6)
      call expect(.not. b%is_set(), "another name was not kept")
      call is(three, 3)
      call a%free()
   end subroutine kept

   subroutine kept_in_vain()
      type(torch_scope) :: scope, other
      type(torch_tensor) :: a, never
      integer :: stat

      call scope%keep(three, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a scope that was never begun keeps nothing")
      call scope%begin()
      call scope%keep(never, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "no tensor cannot be kept")
      call other%begin()
      a = three*2
      call other%end()
      call scope%keep(a, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "a tensor that is gone cannot be kept")
      call scope%end()
   end subroutine kept_in_vain

   subroutine nested()
      type(torch_scope) :: outer, inner
      type(torch_tensor) :: a, b, c
      integer :: i

      call outer%begin("outer")
      c = three*0
      do i = 1, 3
         call inner%begin("inner")
         a = three*i
         b = c + a
         call inner%keep(b)
         c = b
         call inner%keep(c)
         call expect(b%is_set() .and. a%is_set(), "both scopes are open")
         call inner%end()
         call expect(b%is_set() .and. .not. a%is_set(), "the inner scope has ended")
      end do
      call is(c, 18)
      call outer%keep(c)
      call outer%end()
      call expect(.not. b%is_set(), "what the inner scope kept ends with the outer one")
      call is(c, 18)
      call c%free()
   end subroutine nested

   subroutine misused()
      type(torch_scope) :: scope, copy
      character(:), allocatable :: errmsg
      integer :: stat

      call scope%end(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "end without begin", errmsg, "call begin first")
      call scope%begin()
      copy = scope
      call scope%end()
      call scope%end(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a second end")
      call copy%end(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "the end of a copy")
      call expect(number == 0, "no warning so far")
   end subroutine misused

   subroutine never_ended()
      type(torch_scope) :: outer, inner, again
      type(torch_tensor) :: a, b

      number = 0
      call outer%begin("outer")
      call inner%begin("forgotten")
      a = three*2
      call outer%end()
      call expect(number == 1 .and. .not. a%is_set(), "a scope that was forgotten ends with the one outside")
      call expect_text(texts, 'scope "forgotten" was never ended', "a warning names it")
      call again%begin("again")
      b = three*2
      call again%begin("again")
      call expect(number == 2 .and. .not. b%is_set(), "a scope that begins again ends first")
      call expect_text(texts, "begins again", "a warning says so")
      call again%end()
      call expect(number == 2, "a scope that was ended is no reason for a warning")
   end subroutine never_ended

   subroutine new_contents()
      type(torch_scope) :: scope
      type(torch_tensor) :: a
      real(real64), target :: first(1), second(1)

      first = 1
      second = 2
      call a%from_array(first)
      call scope%begin()
      call a%from_array(second)
      call scope%end()
      call is(a, 2)
      call scope%begin()
      a = a + 1
      call scope%end()
      call expect(second(1) == 3, "an array of outside is written into")
      call is(a, 3)
   end subroutine new_contents

   subroutine gradients()
      type(torch_scope) :: outer, inner
      type(torch_tensor) :: w, y, slope

      call make(w, 4)
      call w%set_requires_grad()
      call outer%begin()
      y = w*w
      call expect(y%requires_grad(), "results of what requires gradients require them")
      call inner%begin()
      call inner%no_grad()
      y = w*w
      call expect(.not. y%requires_grad(), "no_grad")
      call inner%enable_grad()
      y = w*w
      call expect(y%requires_grad(), "enable_grad")
      call inner%no_grad()
      call inner%end()
      y = w*w
      call expect(y%requires_grad(), "the end of a scope restores what was before it")
      call outer%no_grad()
      call inner%begin()
      y = w*w
      call expect(.not. y%requires_grad(), "a scope inside has the mode of the one outside")
      call inner%enable_grad()
      y = w*w
      call expect(y%requires_grad(), "enable_grad inside a scope without")
      call y%backward()
      call w%grad(slope)
      call is(slope, 8)
      call inner%end()
      y = w*w
      call expect(.not. y%requires_grad(), "the end restores no_grad")
      call outer%end()
      y = w*w
      call expect(y%requires_grad(), "and the end of the outer one")
      call y%free()
   end subroutine gradients

   subroutine gradients_misused()
      type(torch_scope) :: outer, inner
      character(:), allocatable :: errmsg
      integer :: stat

      call outer%no_grad(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no_grad without begin")
      call outer%begin()
      call inner%begin("inner")
      call outer%no_grad(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "only the innermost scope switches gradients", errmsg)
      call expect_text(errmsg, '"inner" is inside', "and the message names it")
      call inner%end()
      call outer%end()
   end subroutine gradients_misused

   subroutine failures_in_expressions()
      type(torch_scope) :: scope
      type(torch_tensor) :: a, b, c, never
      character(:), allocatable :: errmsg
      real(real32), target :: two(2), four(4)
      real(real64) :: value
      integer :: stat

      two = 2
      four = 4
      call scope%begin()
      call a%from_array(two)
      call b%from_array(four)
      c = torch_sum((a*2 + torch_exp(a*b))**2)/three
      call expect(.not. c%is_set(), "a failed operator deep in an expression: there is no result")
      call c%item(value, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "the first procedure with stat fails", errmsg)
      call expect_text(errmsg, "size of tensor a (2) must match the size of tensor b (4)", "with what torch said")
      call expect_text(errmsg, "(4,)", "and the shapes of the operands")
      call c%backward(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "every procedure fails with it")
      call c%copy_to(torch_out(value), stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "copy_to, too")
      c = 1 - never*2
      call c%item(value, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a tensor without contents in an expression", errmsg)
      c = torch_sum(three, dim=7) + 1
      call c%item(value, stat=stat, errmsg=errmsg)
      call expect(stat /= FTN_PYTORCH_OK, "an axis that is not there")
      call expect_text(errmsg, "7", "the message says which")
      c = three + 1
      call is(c, 4)
      call scope%end()
   end subroutine failures_in_expressions

   subroutine change_in_place()
      type(torch_scope) :: scope
      type(torch_tensor) :: w
      real(real64), target :: array(1)
      character(:), allocatable :: errmsg
      integer :: stat

      array = 4
      call scope%begin()
      call w%from_array(array)
      call w%set_requires_grad()
      call w%copy_from(torch_in(5.0_real64), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "a leaf is overwritten as a whole", errmsg)
      call expect(array(1) == 5, "a leaf is overwritten as a whole")
      call scope%no_grad()
      w = w - 1
      call expect(array(1) == 4, "without gradients a leaf can be changed")
      call expect(w%requires_grad(), "and is still a leaf")
      call scope%end()
   end subroutine change_in_place

   subroutine many_results()
      integer, parameter :: n = 100100
      type(torch_tensor), allocatable :: results(:)
      integer :: i

      number = 0
      allocate (results(n))
      do i = 1, n
         results(i) = three
      end do
      call expect(number == 1, "many results outside of scopes are a reason for one warning")
      call expect_text(texts, "more than 100000 results", "which says so")
      call expect_text(texts, "scope%begin()", "and what to do")
      call results%free()
      call is(three, 3)
   end subroutine many_results
end program test_scopes
