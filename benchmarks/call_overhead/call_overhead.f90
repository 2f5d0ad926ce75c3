! SPDX-License-Identifier: MIT
!> What a call from Fortran costs beyond the same call from Python.
!>
!> call_overhead <functions.py> <result.json>
!>
!> Fortran and Python take turns in one process, so that both meet the same machine; run.py pins the process and makes
!> tables of the result.
program call_overhead
   use, intrinsic :: iso_c_binding, only: c_double, c_int32_t
   use, intrinsic :: iso_fortran_env, only: int64, real32, real64
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

   !> Many short turns of everything, of a millisecond or less: the state of a machine that others use too lasts for
   !> longer than a turn, and for less than the whole
   integer, parameter :: repetitions = 500
   integer, parameter :: many = 1000, some = 100, several = 10, few = 2
   !> More addresses than the library keeps tensors for (1,024 for each argument), so that each call meets one that it
   !> does not know, in whatever order old ones leave. A prime: each argument meets them all
   integer, parameter :: pool_size = 65537
   !> Of a model that calls its script for each block of its domain
   integer, parameter :: block_count = 200
   integer, parameter :: counts(4) = [0, 1, 3, 8]

   !> One row of the result: nanoseconds of a call, of each turn
   type :: measurement
      character(16) :: case
      character(24) :: way
      !> Number of arrays, and the place of that in counts
      integer :: n = 0, place = 1
      real(real64) :: python(repetitions) = 0, fortran(repetitions) = 0
   end type measurement

   !> The script in both modes, with one of its functions as ftn_pytorch_forward for each number of arrays
   type(torch_pymodule) :: checked(size(counts)), safe(size(counts))
   !> With a function that returns an array; with the network and what keeps the times. Fortran and Python call one and
   !> the same network: the weights of another one lie elsewhere in memory, which makes it up to 4 % slower or faster
   type(torch_pymodule) :: first, bench
   type(measurement), allocatable :: rows(:)
   !> Each array is 32 neighbouring columns: only addresses matter, so the arrays may overlap
   real(real64), allocatable :: pool(:, :), blocks(:, :)
   real(real64) :: u1(64, 32), u2(64, 32), u3(64, 32), u4(64, 32), u5(64, 32), u6(64, 32), u7(64, 32), u8(64, 32)
   real(real64) :: tiny(4), result(4)
   real(real32) :: x(16, 32), y(4, 32), target(4, 32)
   type(torch_arg), allocatable :: kept(:), kept_tiny(:), kept_result(:), fresh(:), walk(:)
   character(:), allocatable :: script, file
   character(1) :: number
   integer :: i, r

   script = argument(1)
   file = argument(2)
   call bench%load(script)
   call first%load(script, config=[torch_in("forward", "first3")])

   kept = [torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), &
           torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)]
   kept_tiny = [torch_in(tiny), torch_in(tiny), torch_in(tiny)]
   kept_result = [torch_out(result)]
    allocate (pool(64, pool_size + 31), blocks(64, maxval(counts)*block_count + 31))
   allocate (fresh(some*maxval(counts)))
   walk = [(torch_in(blocks(:, i:i + 31)), i=1, maxval(counts)*block_count)]
   tiny = 1
   x = 0.5
   target = 0.25

   allocate (rows(0))
   do i = 1, size(counts)
      write (number, "(i0)") counts(i)
      call checked(i)%load(script, config=[torch_in("forward", "empty" // number)])
      call safe(i)%load(script, config=[torch_in("forward", "empty" // number)], mode="safe")
      call add("empty " // number, "kept", i)
      call add("empty " // number, "floor", i)
      if (counts(i) == 0) cycle
      call add("empty " // number, "kept, mode safe", i)
      call add("empty " // number, "described", i)
      call add("empty " // number, "walk of 200 blocks", i)
      call add("empty " // number, "never seen", i)
      call add("empty " // number, "never seen, floor", i)
   end do
   call add("first 3", "result dropped", 1)
   call add("first 3", "result delivered", 1)
   call add("mlp forward", "described", 1)
   call add("mlp train", "described", 1)

   do r = 0, repetitions
      do i = 1, size(rows)
         call take_turn(rows(i), r)
      end do
   end do
   do i = 1, size(rows)
      call bench%call("record", [torch_in(trim(rows(i)%case)), torch_in(trim(rows(i)%way)), torch_in(rows(i)%python), &
         torch_in(rows(i)%fortran)])
   end do
   call bench%call("write", [torch_in(file)])

contains

   subroutine add(case, way, place)
      character(*), intent(in) :: case, way
      integer, intent(in) :: place

      rows = [rows, measurement(case=case, way=way, n=counts(place), place=place)]
   end subroutine add

   !> Both sides of a row, one after the other and then again: the first time fills the caches, which another row has
   !> left full of its own, and does not count. Which side begins changes from turn to turn; turn 0 is for warming up
   subroutine take_turn(row, turn)
      type(measurement), intent(inout) :: row
      integer, intent(in) :: turn

      real(real64) :: fortran, python
      integer :: pass

      do pass = 1, 2
         if (mod(turn, 2) == 0) then
            python = python_calls(row)
            fortran = fortran_calls(row)
         else
            fortran = fortran_calls(row)
            python = python_calls(row)
         end if
      end do
      if (turn == 0) return
      row%fortran(turn) = fortran
      row%python(turn) = python
   end subroutine take_turn

   real(real64) function python_calls(row) result(nanoseconds)
      type(measurement), intent(in) :: row

      select case (trim(row%case))
      case ("mlp forward")
         nanoseconds = python_loop(trim(row%case), several)
      case ("mlp train")
         nanoseconds = python_loop(trim(row%case), few)
      case default
         nanoseconds = python_loop(trim(row%case), many)
      end select
   end function python_calls

   real(real64) function fortran_calls(row) result(nanoseconds)
      type(measurement), intent(in) :: row

      select case (trim(row%way))
      case ("kept")
         nanoseconds = kept_calls(checked(row%place), row%n, many)
      case ("floor")
         nanoseconds = floor_of_call(row%n, many)
      case ("kept, mode safe")
         nanoseconds = kept_calls(safe(row%place), row%n, some)
      case ("walk of 200 blocks")
         nanoseconds = walk_calls(checked(row%place), row%n)
      case ("never seen")
         nanoseconds = fresh_calls(checked(row%place), row%n)
      case ("never seen, floor")
         nanoseconds = floor_of_call(row%n, many) + row%n*floor_of_tensor(some)
      case ("result dropped")
         nanoseconds = first_calls(.false.)
      case ("result delivered")
         nanoseconds = first_calls(.true.)
      case default
         select case (trim(row%case))
         case ("mlp forward")
            nanoseconds = network_calls()
         case ("mlp train")
            nanoseconds = training_steps()
         case default
            nanoseconds = described_calls(checked(row%place), row%n)
         end select
      end select
   end function fortran_calls

   real(real64) function kept_calls(model, n, calls) result(nanoseconds)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n, calls
      integer(int64) :: start
      integer :: i

      start = now()
      do i = 1, calls
         call model%forward(kept(:n))
      end do
      nanoseconds = real(now() - start, real64)/calls
   end function kept_calls

   real(real64) function described_calls(model, n) result(nanoseconds)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n
      integer(int64) :: start
      integer :: i

      start = now()
      select case (n)
      case (1)
         do i = 1, many
            call model%forward([torch_in(u1)])
         end do
      case (3)
         do i = 1, many
            call model%forward([torch_in(u1), torch_in(u2), torch_in(u3)])
         end do
      case (8)
         do i = 1, many
            call model%forward([torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), &
                                torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)])
         end do
      end select
      nanoseconds = real(now() - start, real64)/many
   end function described_calls

   !> Each call with the arrays of the next block
   real(real64) function walk_calls(model, n) result(nanoseconds)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n
      integer(int64) :: start
      integer :: i, block

      start = now()
      do i = 1, many/block_count
         do block = 0, block_count - 1
            call model%forward(walk(block*n + 1:block*n + n))
         end do
      end do
      nanoseconds = real(now() - start, real64)/(many/block_count*block_count)
   end function walk_calls

   !> Addresses that the library does not remember: there are so many that each has been forgotten when it comes again
   real(real64) function fresh_calls(model, n) result(nanoseconds)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: n
      integer(int64) :: start
      integer :: i
      integer, save :: place = 1  ! goes on through the pool from turn to turn

      do i = 1, some*n
         fresh(i) = torch_in(pool(:, place:place + 31))
         place = 1 + mod(place, pool_size)
      end do
      start = now()
      do i = 1, some
         call model%forward(fresh(n*(i - 1) + 1:n*i))
      end do
      nanoseconds = real(now() - start, real64)/some
   end function fresh_calls

   !> A function that returns its first argument: result dropped, or delivered into an array of four elements
   real(real64) function first_calls(delivered) result(nanoseconds)
      logical, intent(in) :: delivered
      integer(int64) :: start
      integer :: i

      start = now()
      if (delivered) then
         do i = 1, many
            call first%forward(kept_tiny, kept_result)
         end do
         if (any(result /= tiny)) error stop "the delivered result is wrong"
      else
         do i = 1, many
            call first%forward(kept_tiny)
         end do
      end if
      nanoseconds = real(now() - start, real64)/many
   end function first_calls

   !> The network 16-64-64-4 on a batch of 32, into a Fortran array
   real(real64) function network_calls() result(nanoseconds)
      integer(int64) :: start
      integer :: i

      start = now()
      do i = 1, several
         call bench%forward([torch_in(x)], [torch_out(y)])
      end do
      nanoseconds = real(now() - start, real64)/several
   end function network_calls

   !> Steps of Adam on that network
   real(real64) function training_steps() result(nanoseconds)
      integer(int64) :: start
      real(real32) :: loss
      logical :: done
      integer :: i

      start = now()
      do i = 1, few
         done = bench%train([torch_in(x)], [torch_in(target)], loss)
      end do
      nanoseconds = real(now() - start, real64)/few
      if (done .or. .not. loss < 1) error stop "training went wrong"
   end function training_steps

   real(real64) function python_loop(case, calls) result(nanoseconds)
      character(*), intent(in) :: case
      integer, intent(in) :: calls
      type(torch_results) :: results

      call bench%call("python_loop", [torch_in(case), torch_in(calls)], results)
      call results%scalar(1, nanoseconds)
      call results%free()
   end function python_loop

   integer(int64) function now()
      integer(int64) :: count, rate

      call system_clock(count, rate)
      now = nint(real(count, real64)*(1e9_real64/rate), int64)
   end function now

   function argument(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text
      integer :: length

      call get_command_argument(number, length=length)
      if (length == 0) error stop "usage: call_overhead <functions.py> <result.json>"
      allocate (character(length) :: text)
      call get_command_argument(number, text)
   end function argument

end program call_overhead
