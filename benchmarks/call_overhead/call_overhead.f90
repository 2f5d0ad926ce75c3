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
         integer(c_int32_t), value :: n, calls
      end function floor_of_call
      real(c_double) function floor_of_tensor(calls) bind(c)
         import :: c_double, c_int32_t
         integer(c_int32_t), value :: calls
      end function floor_of_tensor
   end interface

   !> Many short turns: on a machine that others use too, neighbours in time meet the same speed
   integer, parameter :: repetitions = 151
   integer, parameter :: many = 2000, some = 200, few = 20
   !> More arrays than the library keeps tensors for, so that each call meets an address it does not know
   integer, parameter :: pool_size = 2000

   !> The script in both modes, with one of its functions as ftn_pytorch_forward; and the one that keeps the times
   type(torch_pymodule) :: checked, safe, bench
   real(real64) :: python(repetitions), fortran(repetitions)
   real(real64), allocatable :: pool(:, :, :)
   real(real64) :: u1(64, 32), u2(64, 32), u3(64, 32), u4(64, 32), u5(64, 32), u6(64, 32), u7(64, 32), u8(64, 32)
   real(real64) :: tiny(4), result(4)
   real(real32) :: x(16, 32), y(4, 32), target(4, 32)
   type(torch_arg), allocatable :: kept(:), kept_tiny(:), kept_result(:), fresh(:)
   character(:), allocatable :: script, file
   integer :: i

   script = argument(1)
   file = argument(2)
   call bench%load(script)

   kept = [torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)]
   kept_tiny = [torch_in(tiny), torch_in(tiny), torch_in(tiny)]
   kept_result = [torch_out(result)]
   allocate (pool(64, 32, pool_size))
   fresh = [(torch_in(pool(:, :, i)), i=1, pool_size)]
   tiny = 1

   call empty_function("empty 0", 0)
   call empty_function("empty 1", 1)
   call empty_function("empty 3", 3)
   call empty_function("empty 8", 8)
   call delivered_result()
   call network()

   call bench%call("write", [torch_in(file)])

contains

   !> Kept descriptors in both modes, descriptors made in each call, and arrays never seen before
   subroutine empty_function(case, n)
      character(*), intent(in) :: case
      integer, intent(in) :: n
      character(6) :: name
      integer :: r

      write (name, '(a, i0)') "empty", n
      call checked%load(script, config=[torch_in("forward", name)])
      call safe%load(script, config=[torch_in("forward", name)], mode="safe")
      do r = 1, repetitions
         fortran(r) = kept_calls(checked, n, many)
         python(r) = python_loop(case, many)
      end do
      call record(case, "kept")
      do r = 1, repetitions
         fortran(r) = floor_of_call(n, many)
         python(r) = python_loop(case, many)
      end do
      call record(case, "floor")
      if (n == 0) return
      do r = 1, repetitions
         fortran(r) = kept_calls(safe, n, some)
         python(r) = python_loop(case, many)
      end do
      call record(case, "kept, mode safe")
      do r = 1, repetitions
         fortran(r) = described_calls(n, many)
         python(r) = python_loop(case, many)
      end do
      call record(case, "described")
      do r = 1, repetitions
         fortran(r) = fresh_calls(n, some)
         python(r) = python_loop(case, many)
      end do
      call record(case, "never seen")
      do r = 1, repetitions
         fortran(r) = floor_of_call(n, many) + n*floor_of_tensor(some)
         python(r) = python_loop(case, many)
      end do
      call record(case, "never seen, floor")
   end subroutine empty_function

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

   real(real64) function described_calls(n, calls) result(nanoseconds)
      integer, intent(in) :: n, calls
      integer(int64) :: start
      integer :: i

      start = now()
      select case (n)
      case (1)
         do i = 1, calls
            call checked%forward([torch_in(u1)])
         end do
      case (3)
         do i = 1, calls
            call checked%forward([torch_in(u1), torch_in(u2), torch_in(u3)])
         end do
      case (8)
         do i = 1, calls
            call checked%forward([torch_in(u1), torch_in(u2), torch_in(u3), torch_in(u4), &
                                     torch_in(u5), torch_in(u6), torch_in(u7), torch_in(u8)])
         end do
      end select
      nanoseconds = real(now() - start, real64)/calls
   end function described_calls

   real(real64) function fresh_calls(n, calls) result(nanoseconds)
      integer, intent(in) :: n, calls
      integer(int64) :: start
      integer :: i, first

      first = 1
      start = now()
      do i = 1, calls
         call checked%forward(fresh(first:first + n - 1))
         first = first + n
         if (first + n > pool_size) first = 1
      end do
      nanoseconds = real(now() - start, real64)/calls
   end function fresh_calls

   !> A function that returns its first argument: result dropped, and delivered into an array of four elements
   subroutine delivered_result()
      integer(int64) :: start
      integer :: r, i

      call checked%load(script, config=[torch_in("forward", "first3")])
      do r = 1, repetitions
         start = now()
         do i = 1, many
            call checked%forward(kept_tiny)
         end do
         fortran(r) = real(now() - start, real64)/many
         python(r) = python_loop("first 3", many)
      end do
      call record("first 3", "result dropped")
      do r = 1, repetitions
         start = now()
         do i = 1, many
            call checked%forward(kept_tiny, kept_result)
         end do
         fortran(r) = real(now() - start, real64)/many
         python(r) = python_loop("first 3", many)
      end do
      call record("first 3", "result delivered")
      if (any(result /= tiny)) error stop "the delivered result is wrong"
   end subroutine delivered_result

   !> The network 16-64-64-4 on a batch of 32: forward into a Fortran array, and a step of Adam
   subroutine network()
      integer(int64) :: start
      real(real32) :: loss
      logical :: done
      integer :: r, i

      call checked%load(script)
      x = 0.5
      target = 0.25
      do r = 1, repetitions
         start = now()
         do i = 1, some
            call checked%forward([torch_in(x)], [torch_out(y)])
         end do
         fortran(r) = real(now() - start, real64)/some
         python(r) = python_loop("mlp forward", some)
      end do
      call record("mlp forward", "described")
      do r = 1, repetitions
         start = now()
         do i = 1, few
            done = checked%train([torch_in(x)], [torch_in(target)], loss)
         end do
         fortran(r) = real(now() - start, real64)/few
         python(r) = python_loop("mlp train", few)
      end do
      call record("mlp train", "described")
      if (done .or. .not. loss < 1) error stop "training went wrong"
   end subroutine network

   real(real64) function python_loop(case, calls) result(nanoseconds)
      character(*), intent(in) :: case
      integer, intent(in) :: calls
      type(torch_results) :: results

      call bench%call("python_loop", [torch_in(case), torch_in(calls)], results)
      call results%scalar(1, nanoseconds)
      call results%free()
   end function python_loop

   subroutine record(case, way)
      character(*), intent(in) :: case, way

      call bench%call("record", [torch_in(case), torch_in(way), torch_in(python), torch_in(fortran)])
   end subroutine record

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
