! SPDX-License-Identifier: MIT
!> Graphs of several files, and of recorded scripts, on one GPU: on two queues at a time, after a capture that failed,
!> and many of them.
program graphs
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, finish, script
   use fpt_callable, only : torch_callable
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: n = 64, rounds = 20, ready = 9
   type(torch_pymodule) :: drops, drops_too, sums
   real(real32), allocatable :: x(:, :), y(:, :)

   allocate (x(n, n), y(n, n))
   call random_number(x)
   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call make(drops, "drops", 1)
   call make(drops_too, "drops", 1)
   call drops%save("drops.ftr")
   call dropout_on_two_queues()
   call captures_that_are_far_apart()
   call workspaces()
   call after_captures_that_failed()
   call many_files()
   call finish()

contains

   subroutine make(model, kind, number)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: kind
      integer, intent(in) :: number

      call model%load(script("graphs.py"), config=[torch_in("kind", kind), torch_in("number", number)], record=.true.)
      call repeat_call(model, ready)
   end subroutine make

   !> So that it has a graph, where it can have one
   subroutine repeat_call(model, times)
      class(torch_callable), intent(in) :: model
      integer, intent(in) :: times

      integer :: i

      do i = 1, times
         call model%forward([torch_in(x)], [torch_out(y)])
      end do
   end subroutine repeat_call

   !> Both draw from torch's generator
   subroutine dropout_on_two_queues()
      type(torch_module) :: one, two

      call one%load("drops.ftr", device="cuda:0")
      call two%load("drops.ftr", device="cuda:0")
      call repeat_call(one, ready)
      call repeat_call(two, ready)
      call expect(alike(one, two) == 0, "dropout of two files: other numbers on two queues than one after the other")
      call expect(alike(one, drops) == 0, "dropout of a file and of a recorded script")
      call expect(alike(drops_too, drops) == 0, "dropout of two recorded scripts")
   end subroutine dropout_on_two_queues

   !> Rounds that are others than one after the other, and those in which both have the same random numbers
   integer function alike(one, two) result(wrong)
      class(torch_callable), intent(in) :: one, two

      real(real32) :: a(n, n), b(n, n), c(n, n), d(n, n)
      integer :: i

      wrong = 0
      do i = 1, rounds
         call drops%call("seed", [torch_in(i)])
         call on_queues(one, two, .false., x, a, b, n)
         call drops%call("seed", [torch_in(i)])
         call on_queues(one, two, .true., x, c, d, n)
         if (any(a /= c) .or. any(b /= d) .or. all(a == b)) wrong = wrong + 1
      end do
   end function alike

   !> torch's pool of streams has 32, and with a stream comes the memory in which cuBLAS works
   subroutine captures_that_are_far_apart()
      type(torch_pymodule) :: other, small
      type(torch_module) :: one, two, between
      real(real32) :: a(n, n), b(n, n), c(n, n), d(n, n)
      integer :: i, wrong

      call make(sums, "sums", 1)
      call make(other, "sums", 2)
      call make(small, "doubles", 1)
      call sums%save("one.ftr")
      call other%save("two.ftr")
      call small%save("small.ftr")
      call one%load("one.ftr", device="cuda:0")
      call two%load("two.ftr", device="cuda:0")
      call repeat_call(one, ready)
      call one%forward([torch_in(x)], [torch_out(c)])
      do i = 1, 31
         call between%load("small.ftr", device="cuda:0")
         call repeat_call(between, 4)
      end do
      call between%free()
      call repeat_call(two, ready)
      call two%forward([torch_in(x)], [torch_out(d)])
      wrong = 0
      do i = 1, rounds
         call on_queues(one, two, .false., x, a, b, n)
         if (any(a /= c) .or. any(b /= d)) wrong = wrong + 1
      end do
      call expect(wrong == 0, "graphs that were captured 32 captures apart, on two queues")
   end subroutine captures_that_are_far_apart

   !> torch frees those of a stream with each graph that was captured there
   subroutine workspaces()
      type(torch_pymodule) :: other
      real(real32) :: expected(n, n)
      logical :: is_same

      call sums%forward([torch_in(x)], [torch_out(expected)])
      call make(other, "sums", 2)
      call other%free()
      call sums%call("take", [torch_arg ::])
      call sums%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == expected), "a graph after another one was let go")
      call sums%call("is_as_it_was", [torch_arg ::], [torch_out(is_same)])
      call expect(is_same, "and the memory of others is as it was")
   end subroutine workspaces

   !> The files of others, their random numbers, and memory
   subroutine after_captures_that_failed()
      type(torch_pymodule) :: solves
      type(torch_module) :: one, refused
      real(real32) :: expected(n, n)
      integer :: way, i
      logical :: comes_back, is_same

      call one%load("drops.ftr", device="cuda:0")
      call repeat_call(one, ready)
      do way = 1, 2
         if (way == 1) then
            call make(solves, "solves", 1)
         else
            call solves%save("solves.ftr")
            call refused%load("solves.ftr", device="cuda:0")
            call repeat_call(refused, ready)
         end if
         is_same = .true.
         do i = 1, 5 ! a file and a script, whose graphs are older than that, or captured anew
            call drops%call("seed", [torch_in(i)])
            call drops%forward([torch_in(x)], [torch_out(expected)])
            call drops%call("seed", [torch_in(i)])
            call one%forward([torch_in(x)], [torch_out(y)])
            is_same = is_same .and. all(y == expected) .and. any(y == 0) .and. any(y /= 0)
         end do
         call expect(is_same, "random numbers after a capture that failed")
         call drops%call("cached_memory_comes_back", [torch_arg ::], [torch_out(comes_back)])
         call expect(comes_back, "memory that was cached before comes back")
      end do
   end subroutine after_captures_that_failed

   subroutine many_files()
      type(torch_module) :: files(24)
      real(real64) :: before, after
      integer :: i

      call sums%call("reserved", [torch_arg ::], [torch_out(before)])
      do i = 1, size(files)
         call files(i)%load("small.ftr", device="cuda:0")
         call repeat_call(files(i), 4)
      end do
      call sums%call("reserved", [torch_arg ::], [torch_out(after)])
      call expect(after - before < 64, "graphs of files share their memory")
   end subroutine many_files

   !> Each with a queue of its own
   subroutine on_queues(one, two, waits, x, a, b, n)
      class(torch_callable), intent(in) :: one, two
      logical, intent(in) :: waits
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n, n), a(n, n), b(n, n)

      integer :: i

      !$acc enter data copyin(x, a, b)
      !$acc parallel loop present(a) async(1)
      do i = 1, n
         a(1, i) = 0
      end do
      !$acc parallel loop present(b) async(2)
      do i = 1, n
         b(1, i) = 0
      end do
      !$acc wait
      call one%set_stream(queue=1, wait=waits)
      call two%set_stream(queue=2, wait=waits)
      !$acc host_data use_device(x, a, b)
      call one%forward([torch_in(x)], [torch_out(a)])
      call two%forward([torch_in(x)], [torch_out(b)])
      !$acc end host_data
      call one%wait()
      call two%wait()
      !$acc wait
      !$acc exit data copyout(a, b) delete(x)
      call one%set_stream()
      call two%set_stream()
   end subroutine on_queues
end program graphs
