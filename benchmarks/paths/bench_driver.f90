! SPDX-License-Identifier: MIT
!> One case on one path, from Fortran: a process that measures, see ../harness/worker.py.
!>
!>    bench_driver <case> <path> <folder> [request]...    without requests, they come from standard input
!>
!> <case> and the sizes are those of ../models.py, which has written <folder>; <path> is script, recorded, recording (a
!> saved one), package, compiled, copy, torchscript, direct, pt2, onnx, or one of the library of others that this driver
!> was built with: see peer_paths. BENCH_SCRIPT in the environment names script.py (default: seen from the root of the
!> sources).
!>
!>    open N [1]           opened LOAD FIRST_CALL ERROR TOLERANCE    nanoseconds; relative difference to plain Python;
!>                         1: large_stride with layout="reversed"
!>    check CALLS          checked ERROR TOLERANCE                   the largest of so many further calls
!>    call SAMPLES CALLS   times T...
!>
!> Exit code 1 if a result was wrong, 2 if there is no such path, 77 if it could not run something.
program bench_driver
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use bench_field, only : field
   use bench_problem, only : problem, read_problem
   use bench_protocol, only : argument, next_request, now, reply_times, reply_unavailable, say_started
   use bench_runner, only : call_model, keep_warning, load, paths, release, runner, unrecorded
   use ftn_pytorch, only : ftn_pytorch_on_warning
   implicit none

   integer, parameter :: calls_until_recorded = 8
   character(*), parameter :: usage = "bench_driver <case> <path> <folder> [request]...; paths: " // paths
   character(:), allocatable :: case, path, folder, script, layout, errmsg
   character(16) :: name
   type(problem), save :: given
   type(field), save :: output
   type(runner), save :: model
   real(real64) :: loss
   integer :: numbers(2)
   logical :: is_wrong = .false., is_unavailable = .false.

   case = argument(1, usage)
   path = argument(2, usage)
   folder = argument(3, usage)
   if (index(" " // paths // " ", " " // path // " ") == 0) then
      print "(a)", "usage: " // usage
      stop 2
   end if
   call ftn_pytorch_on_warning(keep_warning)
   script = script_file()
   call say_started(4)
   do while (next_request(name, numbers))
      select case (name)
      case ("open")
         call open_problem(numbers(1), is_reversed=case /= "large_stride" .or. numbers(2) == 1)
      case ("check")
         call check(numbers(1))
      case ("call")
         call measure(numbers(1), numbers(2))
      case default
         error stop "unknown request"
      end select
   end do
   if (is_wrong) stop 1
   if (is_unavailable) stop 77

contains

   !> Load, call once and compare
   subroutine open_problem(size, is_reversed)
      integer, intent(in) :: size
      !> By default; Fortran's own order of indices, as the published benchmark has it, makes the strides large that
      !> give large_stride its name
      logical, intent(in) :: is_reversed

      integer(int64) :: start, loaded, called
      real(real64) :: error
      integer :: call
      logical :: found

      layout = trim(merge("reversed", "same    ", is_reversed))
      call release(model)
      call output%release()
      call read_problem(given, case, size, folder, found)
      if (.not. found) then
         call cannot("models.py has not written this size of " // case // " to " // folder)
         return
      end if
      if (given%has_output) call given%expected%spoiled_copy(output)
      if (case == "large_stride") call expect_of_large_stride()
      start = now()
      call load(model, path, given, output, script, layout, errmsg)
      loaded = now() - start
      start = now()
      if (errmsg == "") call call_model(model, loss, errmsg)
      called = now() - start
      if (errmsg /= "") then
         call cannot(errmsg)
         return
      end if
      error = error_of(1)
      if (path == "recorded") then
         do call = 1, calls_until_recorded
            call must_call()
         end do
         if (allocated(unrecorded)) then
            call cannot(unrecorded)
            return
         end if
      end if
      is_wrong = is_wrong .or. .not. error <= given%tolerance
      print "(a, 2(1x, i0), 2(1x, es12.4))", ">> opened", loaded, called, error, given%tolerance
   end subroutine open_problem

   subroutine check(calls)
      integer, intent(in) :: calls

      real(real64) :: error
      integer :: i

      error = 0
      do i = 1, calls
         call must_call()
         error = max(error, error_of(i + 1))
      end do
      is_wrong = is_wrong .or. error > given%tolerance
      print "(a, 2(1x, es12.4))", ">> checked", error, given%tolerance
   end subroutine check

   !> A failure stops the program
   subroutine must_call()
      call call_model(model, loss, errmsg)
      if (errmsg /= "") error stop errmsg
   end subroutine must_call

   !> The model works on the axes that Python sees, and element (1, 2) is counted along those
   subroutine expect_of_large_stride()
      integer :: place

      given%expected%single = 2*given%inputs(1)%single
      place = 2
      if (layout == "same") place = given%expected%extents(1) + 1
      given%expected%single(place) = -given%expected%single(place)
   end subroutine expect_of_large_stride

   !> Relative difference of the last result, or of the loss of a step, to plain Python
   real(real64) function error_of(step) result(error)
      integer, intent(in) :: step

      error = 0
      if (given%has_output) error = output%difference(given%expected)
      if (allocated(given%losses)) then
         if (step <= ubound(given%losses, 1)) error = abs(loss - given%losses(step))/abs(given%losses(step))
         if (loss /= loss) error = huge(error)
      end if
   end function error_of

   subroutine measure(samples, calls)
      integer, intent(in) :: samples, calls

      integer(int64) :: start
      real(real64) :: times(samples)
      integer :: i, j

      do i = 1, samples
         start = now()
         do j = 1, calls
            call must_call()
         end do
         times(i) = real(now() - start, real64)/calls
      end do
      call reply_times(times)
   end subroutine measure

   subroutine cannot(reason)
      character(*), intent(in) :: reason

      is_unavailable = .true.
      call reply_unavailable(reason)
   end subroutine cannot

   function script_file() result(file)
      character(:), allocatable :: file

      integer :: length

      call get_environment_variable("BENCH_SCRIPT", length=length)
      allocate (character(length) :: file)
      call get_environment_variable("BENCH_SCRIPT", file)
      if (file == "") file = "benchmarks/paths/script.py"
   end function script_file
end program bench_driver
