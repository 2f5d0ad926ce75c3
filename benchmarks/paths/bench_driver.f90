! SPDX-License-Identifier: MIT
!> One case on one path, from Fortran.
!>
!>    bench_driver <case> <path> <N> <folder> [calls]    for people: checks each of some calls, then prints times
!>    bench_driver <case> <path> serve <folder>          for the analysis: commands on standard input
!>
!> <case> and <N> are those of ../models.py, which has written <folder>; <path> is script, recorded, recording (a saved
!> one), compiled, copy, torchscript, direct, pt2, onnx, or one of the library of others that this driver was built
!> with: see peer_paths. Environment: USETS=1 makes paths with the script run the TorchScript file; BENCH_SCRIPT names
!> script.py (default: seen from the root of the sources). Exit code 1 if a result is wrong, 2 if there is no such path,
!> 77 if it cannot run the case.
!>
!> Commands, and the replies, which begin with ">>":
!>
!>    open N               opened LOAD FIRST_CALL ERROR TOLERANCE    nanoseconds; relative difference to plain Python
!>                         unavailable REASON
!>    call SAMPLES CALLS   times T...        nanoseconds per call; each sample is the mean of CALLS calls
!>    create SAMPLES       times T...        load and describe once more; a second line for releasing it
!>                         unavailable REASON
!>    quit
program bench_driver
   use, intrinsic :: iso_fortran_env, only : compiler_version, int64, output_unit, real64
   use bench_field, only : field
   use bench_problem, only : problem, read_problem
   use bench_runner, only : call_model, keep_warning, load, paths, release, runner, try_model, unrecorded
   use bench_timing, only : now, print_statistics
   use ftn_pytorch, only : ftn_pytorch_on_warning, ftn_pytorch_version
   implicit none

   integer, parameter :: not_available = 77, calls_until_recorded = 8
   character(:), allocatable :: case, path, folder, script, calls
   type(problem), save :: given
   type(field), save :: output
   type(runner), save :: model
   real(real64) :: loss
   integer :: size, count, status

   if (command_argument_count() < 4) call usage()
   case = argument(1)
   path = argument(2)
   folder = argument(4)
   script = environment("BENCH_SCRIPT")
   if (script == "") script = "benchmarks/paths/script.py"
   if (index(" " // paths // " ", " " // path // " ") == 0) call usage()
   call ftn_pytorch_on_warning(keep_warning)
   if (argument(3) == "serve") then
      call serve()
      stop
   end if
   calls = "10"
   if (command_argument_count() > 4) calls = argument(5)
   read (calls, *, iostat=status) count
   if (status /= 0) call usage()
   calls = argument(3)
   read (calls, *, iostat=status) size
   if (status /= 0 .or. count < 1) call usage()
   call show(size, count)

contains

   !> What a person wants to see
   subroutine show(size, count)
      integer, intent(in) :: size, count

      character(:), allocatable :: errmsg
      integer(int64) :: start, loaded, called, times(count), created(min(count, 5)), freed(min(count, 5))
      real(real64) :: error
      logical :: fine
      integer :: i

      call open_problem(size, layout(), loaded, called, error, errmsg)
      if (errmsg /= "") call give_up(errmsg)
      print "(4a, i0, 2(a, f0.3), a)", case, ", ", path, ", N = ", size, ": load ", loaded/1e6_real64, &
         " ms, first call ", called/1e6_real64, " ms"
      fine = passed(1, error)
      do i = 1, count
         start = now()
         call call_model(model, loss)
         times(i) = now() - start
         fine = passed(i + 1, error_of(i + 1)) .and. fine
      end do
      call print_statistics("call", times)
      call create(created, freed, errmsg)
      if (errmsg == "") then
         call print_statistics("creation", created)
         call print_statistics("deletion", freed)
      else
         print "(2a)", "creation: not available: ", errmsg
      end if
      if (case == "large_stride") then
         call open_problem(size, "reversed", loaded, called, error, errmsg)
         if (errmsg /= "") error stop 1
         print "(a)", "the same with layout=""reversed"""
         fine = passed(1, error) .and. fine
      end if
      if (.not. fine) error stop 1
   end subroutine show

   logical function passed(iteration, error)
      integer, intent(in) :: iteration
      real(real64), intent(in) :: error

      passed = error <= given%tolerance
      print "(a, i0, 3a, es8.1, a, es8.1, a)", "iteration ", iteration, ": ", trim(merge("PASSED", "FAILED", passed)), &
         ", maximum relative error ", error, " (at most ", given%tolerance, ")"
   end function passed

   subroutine serve()
      character(256) :: line, command
      character(:), allocatable :: errmsg
      integer(int64) :: loaded, called
      real(real64) :: error
      integer :: samples, calls, size, status

      print "(4a)", ">> started 0 Fortran ", compiler_version(), ", ftn_pytorch ", ftn_pytorch_version()
      flush (output_unit)
      do
         read (*, "(a)", iostat=status) line
         if (status /= 0) exit
         read (line, *) command
         select case (command)
         case ("open")
            read (line, *) command, size
            call open_problem(size, layout(), loaded, called, error, errmsg)
            if (errmsg == "") then
               print "(a, 2(1x, i0), 2(1x, es12.4))", ">> opened", loaded, called, error, given%tolerance
            else
               print "(2a)", ">> unavailable ", one_line(errmsg)
            end if
         case ("call")
            read (line, *) command, samples, calls
            call measure(samples, calls)
         case ("create")
            read (line, *) command, samples
            call measure_create(samples)
         case ("quit")
            exit
         case default
            error stop "unknown command on standard input"
         end select
         flush (output_unit)
      end do
   end subroutine serve

   !> Load, call once and check, in nanoseconds; large_stride is checked in the other layout too
   subroutine open_problem(size, layout, loaded, called, error, errmsg)
      integer, intent(in) :: size
      character(*), intent(in) :: layout
      integer(int64), intent(out) :: loaded, called
      real(real64), intent(out) :: error
      character(:), allocatable, intent(out) :: errmsg

      integer(int64) :: start
      integer :: call
      logical :: found

      call release(model)
      call output%release()
      call read_problem(given, case, size, folder, found)
      if (.not. found) then
         errmsg = "models.py has not written this size of " // case // " to " // folder
         return
      end if
      if (given%has_output) call given%expected%spoiled_copy(output)
      if (case == "large_stride") call expect_of_large_stride(layout)
      start = now()
      call load(model, path, given, output, script, layout, errmsg)
      loaded = now() - start
      if (errmsg /= "") return
      start = now()
      call try_model(model, loss, errmsg)
      called = now() - start
      error = error_of(1)
      if (errmsg /= "" .or. path /= "recorded") return
      do call = 1, calls_until_recorded
         call call_model(model, loss)
      end do
      if (allocated(unrecorded)) errmsg = unrecorded
   end subroutine open_problem

   !> The model works on the axes that Python sees, and element (1, 2) is counted along those
   subroutine expect_of_large_stride(layout)
      character(*), intent(in) :: layout

      integer :: place

      given%expected%single = 2*given%inputs(1)%single
      place = 2
      if (layout == "same") place = given%expected%extents(1) + 1
      given%expected%single(place) = -given%expected%single(place)
   end subroutine expect_of_large_stride

   !> Fortran's own order of indices, as the published benchmark has it, makes the strides large that give it its name
   function layout()
      character(:), allocatable :: layout

      layout = "reversed"
      if (case == "large_stride") layout = "same"
   end function layout

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

      integer(int64) :: start, times(samples)
      integer :: i, j

      do i = 1, samples
         start = now()
         do j = 1, calls
            call call_model(model, loss)
         end do
         times(i) = (now() - start)/calls
      end do
      call reply(times)
   end subroutine measure

   subroutine measure_create(samples)
      integer, intent(in) :: samples

      character(:), allocatable :: errmsg
      integer(int64) :: created(samples), freed(samples)

      call create(created, freed, errmsg)
      if (errmsg == "") then
         call reply(created)
         call reply(freed)
      else
         print "(2a)", ">> unavailable ", one_line(errmsg)
      end if
   end subroutine measure_create

   !> Nanoseconds of loading the model once more beside the one that is there, and of releasing it
   subroutine create(created, freed, errmsg)
      integer(int64), intent(out) :: created(:), freed(:)
      character(:), allocatable, intent(out) :: errmsg

      type(runner) :: again
      integer(int64) :: start
      integer :: i

      do i = 1, ubound(created, 1)
         start = now()
         call load(again, path, given, output, script, layout(), errmsg)
         created(i) = now() - start
         if (errmsg /= "") return
         start = now()
         call release(again)
         freed(i) = now() - start
      end do
   end subroutine create

   subroutine reply(times)
      integer(int64), intent(in) :: times(:)

      print "(a, *(1x, i0))", ">> times", times
   end subroutine reply

   subroutine give_up(errmsg)
      character(*), intent(in) :: errmsg

      print "(6a)", case, ", ", path, ": not available: ", errmsg
      flush (output_unit)
      stop not_available
   end subroutine give_up

   function one_line(text) result(line)
      character(*), intent(in) :: text
      character(:), allocatable :: line

      line = text(:min(len(text), 400))
      if (index(line, new_line("a")) > 0) line = line(:index(line, new_line("a")) - 1)
   end function one_line

   subroutine usage()
      print "(a)", "usage: bench_driver <case> <path> <N> <folder> [calls]", "   paths: " // paths, &
         "   cases and folder: as models.py wrote them"
      stop 2
   end subroutine usage

   function environment(name) result(text)
      character(*), intent(in) :: name
      character(:), allocatable :: text
      integer :: length

      call get_environment_variable(name, length=length)
      allocate (character(length) :: text)
      call get_environment_variable(name, text)
   end function environment

   function argument(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text
      integer :: length

      call get_command_argument(number, length=length)
      allocate (character(length) :: text)
      call get_command_argument(number, text)
   end function argument
end program bench_driver
