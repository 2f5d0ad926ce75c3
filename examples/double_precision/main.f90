! SPDX-License-Identifier: MIT
!> A model in double precision uses a network in single precision.
!>
!>     double_precision <radiation.py>
program double_precision
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use ftn_pytorch, only : torch_copy, torch_in, torch_out, torch_pymodule, torch_results, FTN_PYTORCH_ERR_DTYPE, &
      FTN_PYTORCH_ERR_PYTHON, FTN_PYTORCH_OK
   implicit none

   integer, parameter :: levels = 30, columns = 200

   type(torch_pymodule) :: as_it_is, casting, narrowing
   type(torch_results) :: results
   real(real64) :: t(levels, columns), heating(levels, columns), heating_of_copy(levels, columns)
   real(real32) :: means(columns)
   character(:), allocatable :: reason, precision
   character(4096) :: script
   integer :: status

   call get_command_argument(1, script, status=status)
   if (status /= 0) error stop "usage: double_precision <radiation.py>"
   call random_init(repeatable=.true., image_distinct=.false.)
   call random_number(t)
   t = 200 + 100*t

   ! Arrays arrive as they are. This network cannot use numbers in double precision, and PyTorch says so
   call as_it_is%load(script)
   call as_it_is%forward([torch_in(t)], [torch_out(heating)], stat=status, errmsg=reason)
   call expect(status == FTN_PYTORCH_ERR_PYTHON, "a network in single precision refuses real64 arrays")
   print "(2a)", "   ", first_line(reason)

   ! First way, the simple one: real arrays become float32 on their way to the script. The results, float32, are
   ! written into real64 outputs. That loses nothing, so nobody has to ask for it
   call casting%load(script, dtype="float32")
   call casting%forward([torch_in(t)], [torch_out(heating)])
   call casting%call("precision_of", [torch_in(t)], results)
   call results%scalar(1, precision)
   call expect(precision == "torch.float32", "with dtype=""float32"" the script receives " // precision)

   ! Second way, where single arrays need it: real(t, real32) is a temporary, gone when its statement goes on.
   ! torch_copy copies it into memory of the library, which keeps it for the call. torch_in would refer to the
   ! temporary, and the network would read what happens to be there by then: no compiler warns of that
   call as_it_is%forward([torch_copy(real(t, real32))], [torch_out(heating_of_copy)])
   call expect(all(heating_of_copy == heating), "torch_copy(real(t, real32)) gives the same results")
   call expect(all(heating == real(heating, real32)), "real64 outputs hold the single-precision results, widened")

   ! The opposite direction loses digits, so it must be asked for
   call casting%call("column_means", [torch_in(t)], [torch_out(means)], stat=status, errmsg=reason)
   call expect(status == FTN_PYTORCH_ERR_DTYPE, "a float64 result is not put into a real32 array")
   print "(2a)", "   ", first_line(reason)
   call narrowing%load(script, dtype="float32", cast=.true.)
   call narrowing%call("column_means", [torch_in(t)], [torch_out(means)], stat=status)
   call expect(status == FTN_PYTORCH_OK, "unless the script was loaded with cast=.true.")
   call expect(all(abs(means - sum(t, 1)/levels) < 1e-4), "then it is rounded")

contains

   !> Say what holds, or stop because it does not
   subroutine expect(holds, what)
      logical, intent(in) :: holds
      character(*), intent(in) :: what

      print "(2a)", merge("true:  ", "FALSE: ", holds), what
      if (.not. holds) error stop
   end subroutine expect

   pure function first_line(text) result(line)
      character(*), intent(in) :: text
      character(:), allocatable :: line

      line = text(:index(text // new_line(text), new_line(text)) - 1)
   end function first_line
end program double_precision
