! SPDX-License-Identifier: MIT
!> The claims of this example: each is a number and the least value it must have.
module verdicts
   use lorenz96, only: dp
   implicit none
   private

   public :: verdict_list

   type :: verdict_list
      logical, private :: all_hold = .true.
   contains
      procedure :: claim
      procedure :: hold
   end type verdict_list

contains

   !> Print a claim, and whether it is true; one whose value is not a number is not
   subroutine claim(self, text, value, least)
      class(verdict_list), intent(inout) :: self
      character(len=*), intent(in) :: text
      real(dp), intent(in) :: value, least

      print "(a5, f10.3, a, f9.3, 2a)", merge("holds", "FAILS", value >= least), value, ", at least", least, ": ", text
      self%all_hold = self%all_hold .and. value >= least
   end subroutine claim

   logical function hold(self)
      class(verdict_list), intent(in) :: self

      hold = self%all_hold
   end function hold

end module verdicts
