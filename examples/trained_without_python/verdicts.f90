! SPDX-License-Identifier: MIT
!> What is compared, and what came of it
module verdicts
   use, intrinsic :: iso_c_binding, only : c_associated, c_char, c_f_procpointer, c_funptr, c_int, c_null_char, &
      c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : int32
   implicit none
   private
   public :: is_mapped, runs_python, same, verdict, end_with_verdict
   logical :: failed = .false.

   interface
      function dlsym(library, name) bind(c) result(address)
         import :: c_char, c_funptr, c_ptr
         implicit none
         type(c_ptr), value :: library
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr) :: address
      end function dlsym
   end interface

   abstract interface
      function is_initialized() bind(c) result(answer)
         import :: c_int
         implicit none
         integer(c_int) :: answer
      end function is_initialized
   end interface

contains

   !> Print one verdict; the program fails if one is wrong
   subroutine verdict(is_right, what)
      logical, intent(in) :: is_right
      character(*), intent(in) :: what

      if (is_right) then
         print "(2a)", "yes: ", what
      else
         print "(2a)", "NO:  ", what
      end if
      failed = failed .or. .not. is_right
   end subroutine verdict

   subroutine end_with_verdict()
      if (failed) error stop "FAILED"
   end subroutine end_with_verdict

   !> Whether all bits are the same. A comparison of numbers would let 0 and -0 pass, and refuse a NaN
   pure logical function same(one, other)
      real, intent(in) :: one(:), other(:)

      same = size(one) == size(other) .and. all(transfer(one, [0_int32]) == transfer(other, [0_int32]))
   end function same

   !> Whether an interpreter of Python runs in this process. libpython itself is mapped in any case, because ftn_pytorch is
   !> linked with it; so it is asked, not looked for
   logical function runs_python()
      type(c_funptr) :: address
      procedure(is_initialized), pointer :: ask

      runs_python = .false.
      address = dlsym(c_null_ptr, "Py_IsInitialized"//c_null_char)
      if (.not. c_associated(address)) return
      call c_f_procpointer(address, ask)
      runs_python = ask() /= 0
   end function runs_python

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
