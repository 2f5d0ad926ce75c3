! SPDX-License-Identifier: MIT
!> Situations that are passed through many times: a few times outside of scopes, and often within a scope of each pass.
!> Values are checked in every pass, and the heap must not grow from pass to pass.
module passes
   use, intrinsic :: iso_c_binding, only : c_size_t
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use check, only : expect, expect_status, expect_text
   use ftn_pytorch
   implicit none
   private

   public :: run, is, are, is_none, make, three, five, pass_number

   !> Tensors of one element that live outside of all scopes
   type(torch_tensor), save :: three, five
   !> Number of the pass, for situations that differ from pass to pass
   integer, save :: pass_number = 0

   !> A forgotten block has 32 bytes at least, and half of that is tolerated in each pass that is counted
   integer, parameter :: warm_up = 40

   character(:), allocatable, save :: current

   !> What glibc tells of the heap, in bytes
   type, bind(c) :: heap_facts
      integer(c_size_t) :: arena, ordblks, smblks, hblks, mapped, usmblks, fsmblks, used, fordblks, keepcost
   end type heap_facts

   abstract interface
      !> One pass
      subroutine situation_interface()
         implicit none
      end subroutine situation_interface
   end interface

   interface
      function mallinfo2() result(facts) bind(c)
         import :: heap_facts
         implicit none
         type(heap_facts) :: facts
      end function mallinfo2
   end interface

contains

   !> Pass through a situation
   subroutine run(name, situation, in_scopes, lost, times)
      !> For messages
      character(*), intent(in) :: name
      !> One pass
      procedure(situation_interface) :: situation
      !> False: it leaves nothing outside of scopes either, and is counted there. Default true
      logical, intent(in), optional :: in_scopes
      !> Bytes that the compiler itself forgets in each pass, default 0
      integer, intent(in), optional :: lost
      !> Passes that are counted, default 300
      integer, intent(in), optional :: times

      type(torch_scope) :: scope
      integer(int64) :: before, growth, tolerated
      integer :: i, counted
      logical :: with_scopes

      with_scopes = .true.
      if (present(in_scopes)) with_scopes = in_scopes
      counted = 300
      if (present(times)) counted = times
      current = name
      if (.not. three%is_set()) call make(three, 3)
      if (.not. five%is_set()) call make(five, 5)
      pass_number = 0
      before = 0
      do i = 1, 2
         pass_number = pass_number + 1
         call situation()
      end do
      do i = 1, warm_up + counted
         pass_number = pass_number + 1
         if (with_scopes) call scope%begin(name)
         call situation()
         if (with_scopes) call scope%end()
         if (i == warm_up) before = used_memory()
      end do
      growth = used_memory() - before
      tolerated = 16*counted
      if (present(lost)) tolerated = tolerated + lost*counted
      call expect(growth < tolerated, name // ": memory stays flat")
      if (growth >= tolerated) print "(a, i0, a)", "   ", growth/counted, " bytes per pass"
      call is(three, 3)
      call is(five, 5)
   end subroutine run

   !> Bytes of the heap in use
   function used_memory() result(bytes)
      integer(int64) :: bytes

      type(heap_facts) :: facts

      facts = mallinfo2()
      bytes = int(facts%used + facts%mapped, int64)
   end function used_memory

   !> A tensor of one element that its variable owns
   subroutine make(tensor, value)
      type(torch_tensor), intent(inout) :: tensor
      integer, intent(in) :: value

      call tensor%from_array(torch_copy([real(value, real64)]))
   end subroutine make

   !> A tensor of one element has a value
   subroutine is(tensor, wanted)
      type(torch_tensor), intent(in) :: tensor
      integer, intent(in) :: wanted

      character(:), allocatable :: errmsg
      character(48) :: where
      real(real64) :: value
      integer :: stat

      value = -huge(value)
      call tensor%item(value, stat=stat, errmsg=errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_status(stat, FTN_PYTORCH_OK, current // ": reading a value", errmsg)
      if (value == wanted .or. stat /= FTN_PYTORCH_OK) return
      write (where, "(a, f0.1, a, i0)") ": ", value, " should be ", wanted
      call expect(.false., current // trim(where))
   end subroutine is

   !> Tensors of one element have values
   subroutine are(tensors, wanted)
      type(torch_tensor), intent(in) :: tensors(:)
      integer, intent(in) :: wanted(:)

      integer :: i

      call expect(size(tensors) == size(wanted), current // ": number of tensors")
      do i = 1, size(tensors)
         call is(tensors(i), wanted(i))
      end do
   end subroutine are

   !> There is no tensor, and using it says so
   subroutine is_none(tensor, wanted)
      type(torch_tensor), intent(in) :: tensor
      !> Status
      integer, intent(in) :: wanted

      real(real64) :: value
      integer :: stat

      call expect(.not. tensor%is_set(), current // ": there is no tensor")
      call tensor%item(value, stat=stat)
      call expect_status(stat, wanted, current // ": using it says so")
   end subroutine is_none
end module passes
