! SPDX-License-Identifier: MIT
!> What the tests on a GPU share: the question whether there is one, and warnings.
module gpu
   use ftn_pytorch, only : ftn_pytorch_on_warning
   use offloading, only : number_of_gpus
   implicit none
   private

   public :: require_gpus, count_warnings, warnings_with

   !> Texts that have arrived, a line each
   character(:), allocatable, save :: texts

contains

   !> End with exit code 77, which ctest counts as skipped, where there are fewer GPUs
   subroutine require_gpus(least)
      integer, intent(in) :: least

      if (number_of_gpus() >= least) return
      print "(2(a, i0))", "skipped: NVIDIA GPUs here for what this was compiled for: ", number_of_gpus(), &
         ", wanted: ", least
      stop 77, quiet=.true.
   end subroutine require_gpus

   !> Keep warnings from now on, for warnings_with
   subroutine count_warnings()
      texts = ""
      call ftn_pytorch_on_warning(keep)
   end subroutine count_warnings

   subroutine keep(text)
      character(*), intent(in) :: text

      texts = texts // text // new_line("a")
   end subroutine keep

   !> How many warnings contain a text that each of them has once
   function warnings_with(part) result(count)
      character(*), intent(in) :: part
      integer :: count

      integer :: first, found

      count = 0
      first = 1
      do
         found = index(texts(first:), part)
         if (found == 0) exit
         count = count + 1
         first = first + found
      end do
   end function warnings_with
end module gpu
