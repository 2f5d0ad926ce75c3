! SPDX-License-Identifier: MIT
!> What a call from Fortran costs beyond the same call from Python: a process that measures, see ../harness/worker.py.
!>
!>     call_overhead <functions.py> [request]...
!>
!> Fortran and Python are in one process, so that both meet the same machine. Requests are WAY:CASE SAMPLES CALLS, where
!> CASE is empty0, empty1, empty3 or empty8, by the number of arrays, first, forward or train. python:CASE is the same
!> call from a loop in Python.
program call_overhead
   use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
   use, intrinsic :: iso_fortran_env, only: int64, real32, real64
   use bench_protocol, only: argument, next_request, now, reply_times, say_started
   use ftn_pytorch
   implicit none

   interface
      real(c_double) function floor_of_call(n, calls) bind(c)
         import :: c_double, c_int32_t
         implicit none
         integer(c_int32_t), value :: n, calls
      end function floor_of_call
      real(c_double) function floor_of_tensor(calls) bind(c)
         import :: c_double, c_int32_t
         implicit none
         integer(c_int32_t), value :: calls
      end function floor_of_tensor
   end interface

   !> More addresses than the library keeps tensors for (1,024 for each argument), so that each call meets one that it
   !> does not know, in whatever order old ones leave. A prime: each argument meets them all
   integer, parameter :: pool_size = 65537
   !> Of a model that calls its script for each block of its domain
   integer, parameter :: block_count = 200
   integer, parameter :: counts(4) = [0, 1, 3, 8]

   !> The script in both modes, with one of its functions as ftn_pytorch_forward for each number of arrays
   type(torch_pymodule) :: checked(size(counts)), safe(size(counts))
   !> With a function that returns an array; with the network and what measures in Python. Both sides call one network:
   !> the weights of another one lie elsewhere in memory, which makes it up to 4 % slower or faster
   type(torch_pymodule) :: first, bench
   !> Each array is 32 neighbouring columns: only addresses matter, so the arrays may overlap
   real(real64), allocatable :: pool(:, :), blocks(:, :)
   real(real64) :: u1(64, 32), u2(64, 32), u3(64, 32), u4(64, 32), u5(64, 32), u6(64, 32), u7(64, 32), u8(64, 32)
   real(real64) :: tiny(4), result(4)
   real(real32) :: x(16, 32), y(4, 32), target(4, 32)
   type(torch_arg), allocatable :: kept(:), kept_tiny(:), kept_result(:), walk(:), fresh(:)
   character(:), allocatable :: script
   character(1) :: number
   character(32) :: request
   integer :: i, colon, numbers(2)

   script = argument(1, "call_overhead <functions.py> [request]...")
   call bench%load(script)
   call first%load(script, config=[torch_in("forward", "first3")])
   do i = 1, size(counts)
      write (number, "(i0)") counts(i)
      call checked(i)%load(script, config=[torch_in("forward", "empty" // number)])
      call safe(i)%load(script, config=[torch_in("forward", "empty" // number)], mode="safe")
   end do
   kept = [torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), &
           torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)]
   kept_tiny = [torch_in(tiny), torch_in(tiny), torch_in(tiny)]
   kept_result = [torch_out(result)]
   allocate (pool(64, pool_size + 31), blocks(64, maxval(counts)*block_count + 31))
   walk = [(torch_in(blocks(:, i:i + 31)), i=1, maxval(counts)*block_count)]
   tiny = 1
   x = 0.5
   target = 0.25

   call say_started(2)
   do while (next_request(request, numbers))
      colon = index(request, ":")
      call reply_times([(nanoseconds_of(request(:colon - 1), trim(request(colon + 1:)), numbers(2)), i=1, numbers(1))])
   end do

contains

   !> Of a call in some way of a case
   real(real64) function nanoseconds_of(way, case, calls) result(nanoseconds)
      character(*), intent(in) :: way, case
      integer, intent(in) :: calls

      integer(int64) :: start
      real(real32) :: loss
      logical :: done
      integer :: n, place, i

      n = max(0, index("0123456789", case(len(case):)) - 1)
      place = findloc(counts, n, 1)
      if (way == "fresh") call describe_fresh(n*calls)
      start = now()
      select case (way)
      case ("kept")
         call kept_calls(checked(place), n, calls)
      case ("safe")
         call kept_calls(safe(place), n, calls)
      case ("described")
         call described_calls(checked(place), n, calls)
      case ("walk")
         call walk_calls(checked(place), n, calls)
      case ("fresh")
         do i = 1, calls
            call checked(place)%forward(fresh(n*(i - 1) + 1:n*i))
         end do
      case ("dropped")
         do i = 1, calls
            call first%forward(kept_tiny)
         end do
      case ("delivered")
         do i = 1, calls
            call first%forward(kept_tiny, kept_result)
         end do
         if (any(result /= tiny)) error stop "the delivered result is wrong"
      case ("network")
         do i = 1, calls
            call bench%forward([torch_in(x)], [torch_out(y)])
         end do
      case ("training")
         do i = 1, calls
            done = bench%train([torch_in(x)], [torch_in(target)], loss)
         end do
         if (done .or. .not. loss < 1) error stop "training went wrong"
      case ("python")
         nanoseconds = python_loop(case, calls)
         return
      case ("floor")
         nanoseconds = floor_of_call(n, calls)
         return
      case ("fresh_floor")
         nanoseconds = floor_of_call(n, calls) + n*floor_of_tensor(calls)
         return
      case default
         error stop "call_overhead: unknown way"
      end select
      nanoseconds = real(now() - start, real64)/calls
   end function nanoseconds_of

   subroutine kept_calls(model, n, calls)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n, calls

      integer :: i

      do i = 1, calls
         call model%forward(kept(:n))
      end do
   end subroutine kept_calls

   subroutine described_calls(model, n, calls)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n, calls

      integer :: i

      select case (n)
      case (1)
         do i = 1, calls
            call model%forward([torch_in(u1)])
         end do
      case (3)
         do i = 1, calls
            call model%forward([torch_in(u1), torch_in(u2), torch_in(u3)])
         end do
      case (8)
         do i = 1, calls
            call model%forward([torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), &
                                torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)])
         end do
      end select
   end subroutine described_calls

   !> Each call with the arrays of the next block
   subroutine walk_calls(model, n, calls)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n, calls

      integer :: i, block

      do i = 1, calls/block_count
         do block = 0, block_count - 1
            call model%forward(walk(block*n + 1:block*n + n))
         end do
      end do
   end subroutine walk_calls

   !> Addresses that the library does not remember: there are so many that each has been forgotten when it comes again
   subroutine describe_fresh(arrays)
      integer, intent(in) :: arrays

      integer :: i
      integer, save :: place = 1  ! goes on through the pool from turn to turn

      if (allocated(fresh)) deallocate (fresh)
      allocate (fresh(arrays))
      do i = 1, arrays
         fresh(i) = torch_in(pool(:, place:place + 31))
         place = 1 + mod(place, pool_size)
      end do
   end subroutine describe_fresh

   real(real64) function python_loop(case, calls) result(nanoseconds)
      character(*), intent(in) :: case
      integer, intent(in) :: calls
      type(torch_results) :: results

      call bench%call("python_loop", [torch_in(case), torch_in(calls)], results)
      call results%scalar(1, nanoseconds)
      call results%free()
   end function python_loop

end program call_overhead
