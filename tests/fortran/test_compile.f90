! SPDX-License-Identifier: MIT
!> torch.compile asked for by load: with floating-point traps on, without running this program a second time, and with
!> an end that comes. The file compile_runs.txt gets a line from each start of the program; the second step counts them.
program test_compile
   use, intrinsic :: ieee_exceptions, only : ieee_get_halting_mode, ieee_set_halting_mode, ieee_usual
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use check, only : expect, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model
   type(torch_results) :: results
   real(real64) :: x(2, 64), y(2, 64), eager(2, 64)
   integer(int64) :: graphs
   integer :: step, unit, starts
   logical :: halting(3)

   call random_init(repeatable=.true., image_distinct=.true.)
   if (command_argument_count() > 0) then
      open (newunit=unit, file="compile_runs.txt", status="old")
      starts = 0
      do
         read (unit, *, iostat=step)
         if (step /= 0) exit
         starts = starts + 1
      end do
      close (unit, status="delete")
      call expect(starts == 1, "the program ran once")
      call finish()
      stop
   end if
   open (newunit=unit, file="compile_runs.txt", position="append")
   write (unit, "(a)") "started"
   close (unit)
   call ieee_set_halting_mode(ieee_usual, .true.)
   call model%load(script("compiled.py"), compile=.true.)
   do step = 1, 4
      call random_number(x)
      x(:, 1) = 0
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%call("eager", [torch_in(x)], [torch_out(eager)])
      call expect(all(abs(y - eager) < 1e-12_real64), "compiled and eager results agree")
   end do
   call ieee_get_halting_mode(ieee_usual, halting)
   call expect(all(halting), "the traps are on as before")
   call ieee_set_halting_mode(ieee_usual, .false.)
   call model%call("is_compiled", results)
   call results%scalar(1, graphs)
   call expect(graphs > 0, "something was compiled")
   call finish()
end program test_compile
