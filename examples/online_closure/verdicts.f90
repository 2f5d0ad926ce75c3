! SPDX-License-Identifier: MIT
!> The claims of this example: each is a number and the least value it must have.
module verdicts
   use lorenz96, only: dp
   implicit none
   private

   public :: claim

   logical, protected, public :: all_hold = .true.

contains

   !> Print a claim, and whether it is true; one whose value is not a number is not
   subroutine claim(text, value, least)
      character(len=*), intent(in) :: text
      real(dp), intent(in) :: value, least

      print "(a5, f10.3, a, f9.3, 2a)", merge("holds", "FAILS", value >= least), value, ", at least", least, ": ", text
      all_hold = all_hold .and. value >= least
   end subroutine claim

end module verdicts
