! SPDX-License-Identifier: MIT
!> What is compared, and what came of it
module verdicts
   use, intrinsic :: iso_fortran_env, only : int32
   implicit none
   private
   public :: is_mapped, same, verdict
   logical, protected, public :: has_failed = .false.

contains

   !> Print one verdict; the program fails if one is wrong
   subroutine verdict(is_right, what)
      logical, intent(in) :: is_right
      character(*), intent(in) :: what

      print "(2a)", merge("yes: ", "NO:  ", is_right), what
      has_failed = has_failed .or. .not. is_right
   end subroutine verdict

   !> Whether all bits are the same. A comparison of numbers would let 0 and -0 pass, and refuse a NaN
   pure logical function same(one, other)
      real, intent(in) :: one(:), other(:)

      same = size(one) == size(other) .and. all(transfer(one, [0_int32]) == transfer(other, [0_int32]))
   end function same

   !> Whether a file with such a name is mapped into this process (Linux)
   logical function is_mapped(name)
      character(*), intent(in) :: name
      character(4096) :: line
      integer :: unit, status

      is_mapped = .false.
      open (newunit=unit, file="/proc/self/maps", action="read", status="old")
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         is_mapped = is_mapped .or. index(line, name) > 0
      end do
      close (unit)
   end function is_mapped
end module verdicts
