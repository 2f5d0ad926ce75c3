! SPDX-License-Identifier: MIT
!> Halos by ftn_pytorch.halo beside MPI_Sendrecv by hand: ranks that measure, see ../harness/worker.py.
!>
!>    mpirun -n PX*PY bench_halo <halo.py> PX PY
!>
!> Fields in double precision, periodic along both axes. Rank 0 takes the requests:
!>
!>    open NX NY FIELDS WIDTH    opened MESSAGES BYTES
!>    hand|call|without S CALLS  times T...               of the slowest rank
program bench_halo
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use mpi_f08
   use bench_protocol, only : argument, next_request, now, reply_times, say_started
   use ftn_pytorch
   implicit none

   integer, parameter :: wp = real64
   character(*), parameter :: usage = "mpirun -n PX*PY bench_halo <halo.py> PX PY"
   integer :: rank, px, py, ix, iy, i, numbers(4)
   character(:), allocatable :: word
   character(16) :: name
   type(torch_pymodule) :: model
   real(wp), allocatable :: u(:, :, :), by_hand(:, :, :), ours(:, :, :), copy(:, :, :), times(:)

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   word = argument(2, usage)
   read (word, *) px
   word = argument(3, usage)
   read (word, *) py
   ix = mod(rank, px)
   iy = rank/px
   if (rank == 0) call say_started(4)
   do while (any_request())
      if (name == "open") then
         call open_fields(numbers(1), numbers(2), numbers(3), numbers(4))
      else
         times = [(slowest(numbers(2)), i=1, numbers(1))]
         if (rank == 0) call reply_times(times)
      end if
   end do
   call MPI_Finalize()

contains

   !> The request, on all ranks; false after the last one
   logical function any_request() result(found)
      found = .true.
      if (rank == 0) found = next_request(name, numbers)
      call MPI_Bcast(found, 1, MPI_LOGICAL, 0, MPI_COMM_WORLD)
      call MPI_Bcast(name, len(name), MPI_CHARACTER, 0, MPI_COMM_WORLD)
      call MPI_Bcast(numbers, size(numbers), MPI_INTEGER, 0, MPI_COMM_WORLD)
   end function any_request

   subroutine open_fields(nx, ny, fields, width)
      integer, intent(in) :: nx, ny, fields, width

      type(torch_results) :: costs
      integer :: messages, bytes

      if (allocated(u)) deallocate (u, copy, by_hand, ours)
      call model%free()
      allocate (u(nx, ny, fields), copy(nx, ny, fields))
      allocate (by_hand(nx + 2*width, ny + 2*width, fields), ours(nx + 2*width, ny + 2*width, fields))
      call random_number(u)
      call model%load(argument(1, usage), communicator=MPI_COMM_WORLD, config=[torch_in("nx", nx), &
         torch_in("ny", ny), torch_in("px", px), torch_in("py", py), torch_in("width", width)])
      call model%call("costs", [torch_in("fields", fields)], costs)
      call costs%scalar("messages", messages)
      call costs%scalar("bytes", bytes)
      call costs%free()
      call pad(by_hand, width)
      call model%call("pad", [torch_in("u", u)], [torch_out(ours)])
      if (any(by_hand /= ours)) error stop "the halos differ"
      if (rank == 0) print "(a, 2(1x, i0))", ">> opened", messages, bytes
   end subroutine open_fields

   !> Nanoseconds of a call on the slowest rank
   real(wp) function slowest(calls)
      integer, intent(in) :: calls

      integer(int64) :: start
      integer :: turn

      call MPI_Barrier(MPI_COMM_WORLD)
      start = now()
      do turn = 1, calls
         select case (name)
         case ("hand")
            call pad(by_hand, (size(by_hand, 1) - size(u, 1))/2)
         case ("call")
            call model%call("pad", [torch_in("u", u)], [torch_out(ours)])
         case ("without")
            call model%call("same", [torch_in("u", u)], [torch_out(copy)])
         end select
      end do
      slowest = real(now() - start, wp)/calls
      call MPI_Allreduce(MPI_IN_PLACE, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
   end function slowest

   !> Rows along x first, then along y with the corners
   subroutine pad(w, h)
      real(wp), intent(inout) :: w(:, :, :)
      integer, intent(in) :: h

      integer :: nx, ny

      nx = size(u, 1)
      ny = size(u, 2)
      w(h + 1:h + nx, h + 1:h + ny, :) = u
      call move(w(nx + 1:nx + h, :, :), at(ix + 1, iy), w(:h, :, :), at(ix - 1, iy))
      call move(w(h + 1:2*h, :, :), at(ix - 1, iy), w(h + nx + 1:, :, :), at(ix + 1, iy))
      call move(w(:, ny + 1:ny + h, :), at(ix, iy + 1), w(:, :h, :), at(ix, iy - 1))
      call move(w(:, h + 1:2*h, :), at(ix, iy - 1), w(:, h + ny + 1:, :), at(ix, iy + 1))
   end subroutine pad

   subroutine move(sent, target, received, source)
      real(wp), intent(in) :: sent(:, :, :)
      integer, intent(in) :: target, source
      real(wp), intent(inout) :: received(:, :, :)

      real(wp), allocatable :: there(:, :, :), here(:, :, :)

      allocate (there, source=sent)
      allocate (here, mold=there)
      call MPI_Sendrecv(there, size(there), MPI_DOUBLE_PRECISION, target, 0, here, size(here), &
         MPI_DOUBLE_PRECISION, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
      received = here
   end subroutine move

   integer function at(i, j)
      integer, intent(in) :: i, j

      at = modulo(i, px) + modulo(j, py)*px
   end function at

end program bench_halo
