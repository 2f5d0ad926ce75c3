! SPDX-License-Identifier: MIT
!> One process computes the rows of all ranks that use a GPU as one array: rows that depend on those of other ranks.
!>
!>     test_gpu_rows <device>      device "cpu" does the same without a GPU
program test_gpu_rows
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use played_ranks, only : ranks_begin, ranks_failed, ranks_wait, require_device
   implicit none

   character(5), parameter :: ways(6) = [character(5) :: "back", "ahead", "place", "first", "last", "wraps"]
   integer, parameter :: refused = FTN_PYTORCH_ERR_ARGUMENT
   integer :: i, n, rank
   character(20) :: device
   type(torch_pymodule) :: model
   real(real64) :: x(3, 7), y(3, 7), z(3, 7)

   call get_command_argument(1, device)
   call require_device(device)
   rank = ranks_begin(4)
   call model%load(script("gpu_ranks.py"), communicator=0, per="gpu", device=trim(device))
   ! other rows on each rank, and on one of them none
   n = merge(0, 1 + 2*rank, rank == 1)
   x = reshape([(sin(real(i)), i=1, 21)], [3, 7]) + rank
   y = -1
   do i = 1, size(ways)
      call depends(ways(i), x(:, :n), y(:, :n), merge(FTN_PYTORCH_OK, refused, rank == 1))
   end do
   call expect(all(y == -1), "outputs of calls that failed")
   ! where all rows are equal at first nobody sees it, and they may be wrong until a batch is checked again
   do i = 1, 4
      z = merge(0d0, x, i <= 2)
      if (i == 3) call model%call("depends_first", [torch_in(z)], [torch_out(y)])
      if (i /= 3) call depends("first", z, y, merge(FTN_PYTORCH_OK, refused, i <= 2))
   end do
   ! a script that has changed is another one
   do i = 1, 5
      call depends("load", x, y, merge(FTN_PYTORCH_OK, refused, i <= 4))
      if (i <= 4) call expect(all(y == 2*x), "rows by themselves")
      if (i == 4 .and. rank == 0) call model%reload()
   end do
   if (rank == 0) call expect(ranks_failed() == 0, "the other ranks")
   call finish()

contains

   subroutine depends(way, given, results, expected)
      character(*), intent(in) :: way
      real(real64), intent(in), target :: given(:, :)
      real(real64), target :: results(:, :)
      integer, intent(in) :: expected

      character(:), allocatable :: errmsg
      integer :: stat

      ! the owner waits for all of them
      call ranks_wait()
      if (rank == 0) call model%call("wait", [torch_in(0.2)])
      call ranks_wait()
      call model%call("depends_"//trim(way), [torch_in(given)], [torch_out(results)], stat=stat, errmsg=errmsg)
      call expect_status(stat, expected, "rows that depend: "//way, errmsg)
      if (expected == refused) call expect_text(errmsg, "depends on the rows of other ranks", "the text about that")
   end subroutine depends

end program test_gpu_rows
