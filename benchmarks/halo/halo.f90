! SPDX-License-Identifier: MIT
!> Halos by ftn_pytorch.halo beside MPI_Sendrecv by hand: mpirun -n PX*PY bench_halo halo.py PX PY
!>
!> Fields in double precision, periodic along both axes, in turns. The time of a round is that of the slowest rank.
program bench_halo
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use mpi_f08
   use ftn_pytorch
   implicit none

   integer, parameter :: wp = real64, rounds = 300, calls = 10
   !> nx, ny, fields, width
   integer, parameter :: sizes(4, 4) = reshape([24, 12, 3, 5, 96, 96, 3, 7, 96, 96, 20, 7, 256, 256, 10, 7], [4, 4])
   integer :: rank, px, py, ix, iy, i
   character(4096) :: script
   character(16) :: word
   type(torch_pymodule) :: model
   real(wp), allocatable :: u(:, :, :), by_hand(:, :, :), ours(:, :, :), copy(:, :, :)

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   call get_command_argument(1, script)
   call get_command_argument(2, word)
   read (word, *) px
   call get_command_argument(3, word)
   read (word, *) py
   ix = mod(rank, px)
   iy = rank/px
   if (rank == 0) then
      print "(a)", "| nx | ny | fields | halo | messages | kB | by hand, us | a call, us | without, us | ratio |"
      print "(a)", "|---|---|---|---|---|---|---|---|---|---|"
   end if
   do i = 1, size(sizes, 2)
      call measure(sizes(1, i), sizes(2, i), sizes(3, i), sizes(4, i))
   end do
   call MPI_Finalize()

contains

   subroutine measure(nx, ny, fields, width)
      integer, intent(in) :: nx, ny, fields, width

      type(torch_results) :: told
      real(wp) :: best(3)
      integer :: round, way, messages, bytes

      allocate (u(nx, ny, fields), copy(nx, ny, fields))
      allocate (by_hand(nx + 2*width, ny + 2*width, fields), ours(nx + 2*width, ny + 2*width, fields))
      call random_number(u)
      call model%load(trim(script), communicator=MPI_COMM_WORLD, config=[torch_in("nx", nx), torch_in("ny", ny), &
         torch_in("px", px), torch_in("py", py), torch_in("width", width)])
      call model%call("costs", [torch_in("fields", fields)], told)
      call told%scalar("messages", messages)
      call told%scalar("bytes", bytes)
      best = huge(best)
      do round = 1, rounds
         do way = 1, 3
            best(way) = min(best(way), slowest(way, width))
         end do
      end do
      if (any(by_hand /= ours)) error stop "the halos differ"
      if (rank == 0) print "('| ', 2(i0, ' | '), 3(i0, ' | '), 4(f0.1, ' | '), f0.1, ' |')", &
         nx, ny, fields, width, messages, bytes/1e3_wp, best*1e6_wp, best(2)/best(1)
      call told%free()
      call model%free()
      deallocate (u, copy, by_hand, ours)
   end subroutine measure

   !> Seconds of a call on the slowest rank; way: by hand, with exchange, without
   real(wp) function slowest(way, width)
      integer, intent(in) :: way, width

      integer(int64) :: start, finish, rate
      integer :: turn

      call MPI_Barrier(MPI_COMM_WORLD)
      call system_clock(start, rate)
      do turn = 1, calls
         select case (way)
         case (1)
            call pad(by_hand, width)
         case (2)
            call model%call("pad", [torch_in("u", u)], [torch_out(ours)])
         case (3)
            call model%call("same", [torch_in("u", u)], [torch_out(copy)])
         end select
      end do
      call system_clock(finish)
      slowest = real(finish - start, wp)/rate/calls
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
