! SPDX-License-Identifier: MIT
!> Threads that fail at the same time, each with an errmsg of its own, declared where the documentation says.
program test_errmsg_threads
   use check, only : expect, finish
   use ftn_pytorch
   implicit none

   integer, parameter :: failures = 2000
   character(*), parameter :: letters = "abcdefghijklmnopqrstuvwxyz"
   integer :: wrong, i
   type(torch_pymodule) :: nothing

   wrong = 0
   !$omp parallel do reduction(+:wrong)
   do i = 1, failures
      block
         character(:), allocatable :: errmsg
         integer :: stat

         call nothing%load(repeat(letters, mod(i, 7)) // letters(:mod(i, 26)) // ".py", stat=stat, errmsg=errmsg)
         if (.not. is_reason(errmsg, i) .or. stat /= FTN_PYTORCH_ERR_FILE) wrong = wrong + 1
      end block
      call fail(i, wrong)
   end do
   call expect(wrong == 0, "reasons of failures in threads")
   call finish()

contains

   subroutine fail(i, wrong)
      integer, intent(in) :: i
      integer, intent(inout) :: wrong

      character(:), allocatable :: errmsg
      integer :: stat

      call nothing%load(repeat(letters, mod(i, 7)) // letters(:mod(i, 26)) // ".py", stat=stat, errmsg=errmsg)
      if (.not. is_reason(errmsg, i) .or. stat /= FTN_PYTORCH_ERR_FILE) wrong = wrong + 1
   end subroutine fail

   function is_reason(errmsg, i) result(yes)
      character(*), intent(in) :: errmsg
      integer, intent(in) :: i
      logical :: yes

      yes = index(errmsg, "loading " // repeat(letters, mod(i, 7)) // letters(:mod(i, 26)) // ".py:") == 1
      yes = yes .and. index(errmsg, "relative to the working directory)") == len(errmsg) - 33
   end function is_reason
end program test_errmsg_threads
