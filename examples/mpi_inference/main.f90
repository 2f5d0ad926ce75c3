! SPDX-License-Identifier: MIT
!> Each MPI rank runs the network on columns of its own.
!>
!>     mpirun -n 4 mpi_inference <columns.py> [train | fail]
!>
!> train: the ranks also train, each a network of its own, and are warned of that. fail: the script fails on one rank,
!> and all ranks must end.
module communication
   use mpi_f08
   implicit none
   private

   public :: abort_all, count_warning, rank, ranks, warnings

   integer :: rank, ranks, warnings = 0

contains

   !> Called before a failure ends this program. The others would wait for this rank for ever
   subroutine abort_all(code, text)
      use, intrinsic :: iso_fortran_env, only : error_unit
      integer, intent(in) :: code
      character(*), intent(in) :: text

      write (error_unit, "(a, i0, 2a)") "rank ", rank, " fails: ", text
      flush (error_unit)
      call MPI_Abort(MPI_COMM_WORLD, code)
   end subroutine abort_all

   subroutine count_warning(text)
      character(*), intent(in) :: text

      warnings = warnings + 1
      print "(a, i0, 2a)", "rank ", rank, " is warned: ", text
   end subroutine count_warning
end module communication

program mpi_inference
   use, intrinsic :: ieee_arithmetic, only : ieee_quiet_nan, ieee_value
   use, intrinsic :: iso_fortran_env, only : real32
   use communication, only : abort_all, count_warning, rank, ranks, warnings
   use ftn_pytorch, only : ftn_pytorch_on_error, ftn_pytorch_on_warning, ftn_pytorch_set_threads, torch_in, torch_out, &
      torch_pymodule
   use mpi_f08
   implicit none

   integer, parameter :: levels = 20, all_columns = 1002

   type(torch_pymodule) :: model
   real(real32), allocatable :: x(:, :), y(:, :), all_x(:, :), all_y(:, :), expected(:, :)
   integer, allocatable :: counts(:), starts(:)
   character(4096) :: script, option
   integer :: status, i, first, last

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks)
   call ftn_pytorch_on_error(abort_all)
   call ftn_pytorch_on_warning(count_warning)

   call get_command_argument(1, script, status=status)
   if (status /= 0) call abort_all(1, "usage: mpi_inference <columns.py> [train | fail]")
   call get_command_argument(2, option)

   ! One thread for each rank. Without this call a rank uses its share of the cores of the node
   call ftn_pytorch_set_threads(1)
   call model%load(script)

   ! The columns are the last dimension, so that those of a rank follow each other in memory
   allocate (starts(0:ranks), counts(0:ranks - 1))
   starts(:) = [(all_columns*i/ranks, i=0, ranks)]
   counts(:) = starts(1:) - starts(:ranks - 1)
   first = starts(rank) + 1
   last = starts(rank + 1)
   allocate (all_x(levels, all_columns), all_y(levels, all_columns))
   call random_init(repeatable=.true., image_distinct=.false.)
   call random_number(all_x)
   x = all_x(:, first:last)
   allocate (y, mold=x)

   if (option == "fail" .and. rank == ranks/2) x(1, 1) = ieee_value(x(1, 1), ieee_quiet_nan)
   call model%forward([torch_in(x)], [torch_out(y)])
   print "(a, i0, 3(a, i0))", "rank ", rank, " of ", ranks, ": columns ", first, " to ", last

   call MPI_Gatherv(y, size(y), MPI_REAL4, all_y, levels*counts, levels*starts(:ranks - 1), MPI_REAL4, 0, &
      MPI_COMM_WORLD)
   if (rank == 0) then
      ! What a program without MPI would have computed. Last digits may depend on the number of columns in a call
      allocate (expected, mold=all_y)
      call model%forward([torch_in(all_x)], [torch_out(expected)])
      if (any(abs(all_y - expected) > 1e-5)) call abort_all(1, "the gathered columns are not those of a single call")
      print "(a)", "the gathered columns are those of a single call"
   end if
   if (option == "train") call train()
   call MPI_Finalize()

contains

   !> A few steps on every rank
   subroutine train()
      real(real32) :: loss
      integer :: step, all_warnings
      logical :: done

      do step = 1, 3
         done = model%train([torch_in(x)], [torch_in(x)], loss)
      end do
      call MPI_Allreduce(warnings, all_warnings, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
      if (ranks > 1 .and. all_warnings /= 1) call abort_all(1, "the ranks were not warned exactly once")
   end subroutine train
end program mpi_inference
