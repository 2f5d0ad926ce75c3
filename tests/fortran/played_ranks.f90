! SPDX-License-Identifier: MIT
!> Ranks that are forked in place of those of MPI, see played_ranks.c.
module played_ranks
   use, intrinsic :: iso_c_binding, only : c_int
   implicit none
   private

   public :: ranks_begin, ranks_wait, ranks_failed, ranks_die, require_device

   interface
      function ranks_begin(n) bind(c) result(rank)
         import :: c_int
         implicit none
         integer(c_int), value :: n
         integer(c_int) :: rank
      end function ranks_begin
      subroutine ranks_wait() bind(c)
         implicit none
      end subroutine ranks_wait
      function ranks_failed() bind(c) result(n)
         import :: c_int
         implicit none
         integer(c_int) :: n
      end function ranks_failed
      subroutine ranks_die() bind(c)
         implicit none
      end subroutine ranks_die
   end interface

contains

   !> Skip the test of a device that is not there
   subroutine require_device(device)
      character(*), intent(in) :: device
      logical :: has_gpu

      inquire (file="/proc/driver/nvidia/version", exist=has_gpu)
      if (device == "cpu" .or. has_gpu) return
      print "(a)", "skipped: no NVIDIA GPU here"
      stop 77, quiet=.true.
   end subroutine require_device
end module played_ranks
