! SPDX-License-Identifier: MIT
!> The claims of this example: each is a number and the least value it must have.
module verdicts
   use lorenz96, only: dp
   implicit none
   private

   public :: verdict_list

   type :: verdict
      character(len=72) :: claim
      real(dp) :: value, least
   end type verdict

   type :: verdict_list
      type(verdict), allocatable, private :: all(:)
   contains
      procedure :: claim
      procedure :: print_table
      procedure :: hold
   end type verdict_list

contains

   subroutine claim(self, text, value, least)
      class(verdict_list), intent(inout) :: self
      character(len=*), intent(in) :: text
      real(dp), intent(in) :: value, least

      if (.not. allocated(self%all)) allocate (self%all(0))
      self%all = [self%all, verdict(text, value, least)]
   end subroutine claim

   !> Whether a claim is true; one whose value is not a number is not
   elemental logical function holds(one)
      type(verdict), intent(in) :: one

      holds = one%value >= one%least
   end function holds

   logical function hold(self)
      class(verdict_list), intent(in) :: self

      hold = all(holds(self%all))
   end function hold

   subroutine print_table(self)
      class(verdict_list), intent(in) :: self

      integer :: i

      print "(a)", "", "verdict      value     least   claim"
      do i = 1, size(self%all)
         associate (one => self%all(i))
            print "(a7, 2f10.3, 3x, a)", merge("holds  ", "FAILS  ", holds(one)), one%value, one%least, trim(one%claim)
         end associate
      end do
   end subroutine print_table

end module verdicts
