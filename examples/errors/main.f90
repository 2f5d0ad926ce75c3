! SPDX-License-Identifier: MIT
!> Everything that can go wrong and can be told, and a program that goes on after each.
!>
!>     errors <folder of this example>
!>
!> Without stat= a failure ends the program with the same text.
module mistakes
   use, intrinsic :: iso_fortran_env, only : real32
   use ftn_pytorch
   implicit none
   private

   public :: receive_warning, wrong_files, wrong_functions, wrong_results, wrong_arguments, wrong_objects
   public :: number_told, number_wrong

   integer, parameter :: n = 4

   type(torch_pymodule) :: model
   real(real32) :: x(n) = [1.0, 2.0, 3.0, 4.0], y(n)
   real(real32), allocatable :: missing(:)
   character(:), allocatable :: reason, warning
   integer :: status, number_told = 0, number_wrong = 0

contains

   !> Print a failure, check that it is the expected one, and that the program can go on
   subroutine told(what, name, expected)
      !> What went wrong, and the name of the status that says so
      character(*), intent(in) :: what, name
      !> That status
      integer, intent(in) :: expected

      number_told = number_told + 1
      print "(i2, 4a)", number_told, ". ", what, ": ", name
      if (status == expected) then
         print "(2a)", "    ", first_line(reason)
      else
         number_wrong = number_wrong + 1
         print "(a, i0)", "    WRONG: the status is ", status
      end if

      y = 0
      call model%forward([torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      if (status /= FTN_PYTORCH_OK .or. any(y /= 2*x)) then
         number_wrong = number_wrong + 1
         print "(a)", "    WRONG: the next correct call fails"
      end if
   end subroutine told

   !> What load and ftn_pytorch_init may say
   subroutine wrong_files(folder)
      character(*), intent(in) :: folder

      type(torch_pymodule) :: another
      character(:), allocatable :: why
      integer :: unit, failure

      ! The first call of all: a Python that cannot be started. The program may try another one. told() needs the
      ! script, so this failure is kept until the script is there
      call ftn_pytorch_init(python=folder // "/no/python", stat=failure, errmsg=why)
      call model%load(folder // "/mistakes.py")
      status = failure
      reason = why
      call told("an interpreter that is not there", "FTN_PYTORCH_ERR_INTERPRETER", FTN_PYTORCH_ERR_INTERPRETER)

      call another%load(folder // "/no_such_script.py", stat=status, errmsg=reason)
      call told("a file that is not there", "FTN_PYTORCH_ERR_FILE", FTN_PYTORCH_ERR_FILE)

      call another%load(folder // "/README.md", stat=status, errmsg=reason)
      call told("a file that is no script", "FTN_PYTORCH_ERR_FORMAT", FTN_PYTORCH_ERR_FORMAT)

      open (newunit=unit, file="unfinished.py", action="write", status="replace")
      write (unit, "(a)") "def ftn_pytorch_forward(x:"
      close (unit)
      call another%load("unfinished.py", stat=status, errmsg=reason)
      open (newunit=unit, file="unfinished.py", status="old")
      close (unit, status="delete")
      call told("a script that is not valid Python", "FTN_PYTORCH_ERR_SYNTAX", FTN_PYTORCH_ERR_SYNTAX)

      call another%load(folder // "/missing_package.py", stat=status, errmsg=reason)
      call told("a package that is not installed", "FTN_PYTORCH_ERR_IMPORT", FTN_PYTORCH_ERR_IMPORT)

      call another%load(folder // "/mistakes.py", config=[torch_in("factor", "two")], stat=status, errmsg=reason)
      call told("a set-up that fails", "FTN_PYTORCH_ERR_SCRIPT", FTN_PYTORCH_ERR_SCRIPT)

      call another%load(folder // "/mistakes.py", mode="save", stat=status, errmsg=reason)
      call told("an option with a typing error", "FTN_PYTORCH_ERR_ARGUMENT", FTN_PYTORCH_ERR_ARGUMENT)

      call another%load(folder // "/mistakes.py", device="cuda:99", stat=status, errmsg=reason)
      call told("a device that is not there", "FTN_PYTORCH_ERR_DEVICE", FTN_PYTORCH_ERR_DEVICE)
   end subroutine wrong_files

   !> Functions that are not there, cannot be called this way, or fail
   subroutine wrong_functions()
      character(:), allocatable :: whole_text

      call model%call("root", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a function that is not there", "FTN_PYTORCH_ERR_HOOK", FTN_PYTORCH_ERR_HOOK)

      call model%forward([torch_in(x), torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("too many arguments", "FTN_PYTORCH_ERR_SIGNATURE", FTN_PYTORCH_ERR_SIGNATURE)

      x(3) = -1
      call model%call("root_of", [torch_in(x)], [torch_out(y)], stat=status, errmsg=whole_text)
      x(3) = 3
      reason = whole_text
      call told("an exception in the script", "FTN_PYTORCH_ERR_PYTHON", FTN_PYTORCH_ERR_PYTHON)
      print "(a)", "    The text goes on with Python's traceback:", rest(whole_text)
   end subroutine wrong_functions

   !> Results that do not fit the outputs. No output is touched
   subroutine wrong_results()
      type(torch_results) :: results
      real(real32), pointer :: p(:, :)
      real(real32) :: z(n), loss
      logical :: done

      call model%call("a_set", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a result of a type without counterpart", "FTN_PYTORCH_ERR_RESULT_TYPE", FTN_PYTORCH_ERR_RESULT_TYPE)

      call model%call("two_results", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("two results for one output", "FTN_PYTORCH_ERR_RESULT_COUNT", FTN_PYTORCH_ERR_RESULT_COUNT)

      call model%call("named_results", [torch_in(x)], [torch_out(y), torch_out(z)], stat=status, errmsg=reason)
      call told("named results for outputs without names", "FTN_PYTORCH_ERR_RESULT_NAME", FTN_PYTORCH_ERR_RESULT_NAME)

      call model%call("double_precision", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a result with more digits than the output", "FTN_PYTORCH_ERR_DTYPE", FTN_PYTORCH_ERR_DTYPE)

      call model%call("one_column", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a result of another shape", "FTN_PYTORCH_ERR_SHAPE", FTN_PYTORCH_ERR_SHAPE)

      call model%forward([torch_in(x)], results)
      call results%to_array(1, p, stat=status, errmsg=reason)
      call told("a pointer of another rank than the result", "FTN_PYTORCH_ERR_RANK", FTN_PYTORCH_ERR_RANK)

      done = model%train([torch_in(x)], [torch_in(x)], loss, stat=status, errmsg=reason)
      call told("loss and flag in the wrong order", "FTN_PYTORCH_ERR_TRAIN_RESULT", FTN_PYTORCH_ERR_TRAIN_RESULT)
   end subroutine wrong_results

   !> Arguments that cannot cross, and a script that does with them what it must not do
   subroutine wrong_arguments()
      logical :: flag

      call model%forward([torch_in(missing)], [torch_out(y)], stat=status, errmsg=reason)
      call told("an array that is not allocated", "FTN_PYTORCH_ERR_UNALLOCATED", FTN_PYTORCH_ERR_UNALLOCATED)

      flag = .true.
      call model%forward([torch_out(flag)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a default logical that the script may change", "FTN_PYTORCH_ERR_KIND", FTN_PYTORCH_ERR_KIND)

      call model%forward([torch_in(x(n:1:-1))], [torch_out(y)], stat=status, errmsg=reason)
      call told("an array that runs backwards", "FTN_PYTORCH_ERR_STRIDE", FTN_PYTORCH_ERR_STRIDE)

      call model%call("change_in_place", [torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      x = [1.0, 2.0, 3.0, 4.0]
      call told("an input that the script changed", "FTN_PYTORCH_ERR_INPUT_MODIFIED", FTN_PYTORCH_ERR_INPUT_MODIFIED)

      ! No failure yet, but the beginning of wrong numbers: a warning, to a procedure of the program
      warning = ""
      call model%call("keep", [torch_in(x)], stat=status, errmsg=reason)
      reason = warning
      if (warning == "") status = -1
      call told("an input that the script kept", "a warning", FTN_PYTORCH_OK)
   end subroutine wrong_arguments

   !> Objects without contents
   subroutine wrong_objects(folder)
      character(*), intent(in) :: folder

      type(torch_pymodule) :: empty, original, alias

      call empty%forward([torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a module that was never loaded", "FTN_PYTORCH_ERR_NOT_LOADED", FTN_PYTORCH_ERR_NOT_LOADED)

      call original%load(folder // "/mistakes.py")
      alias = original
      call original%free()
      call alias%forward([torch_in(x)], [torch_out(y)], stat=status, errmsg=reason)
      call told("a copy of a module that was released", "FTN_PYTORCH_ERR_FREED", FTN_PYTORCH_ERR_FREED)
   end subroutine wrong_objects

   !> Receiver of warnings. It may not call the library
   subroutine receive_warning(text)
      character(*), intent(in) :: text

      warning = text
   end subroutine receive_warning

   pure function first_line(text) result(line)
      character(*), intent(in) :: text
      character(:), allocatable :: line

      line = text(:index(text // new_line(text), new_line(text)) - 1)
   end function first_line

   pure function rest(text) result(lines)
      character(*), intent(in) :: text
      character(:), allocatable :: lines

      lines = text(index(text, new_line(text)) + 1:)
   end function rest
end module mistakes

program errors
   use ftn_pytorch, only : ftn_pytorch_on_warning
   use mistakes
   implicit none

   character(4096) :: folder
   integer :: status

   call get_command_argument(1, folder, status=status)
   if (status /= 0) error stop "usage: errors <folder of this example>"

   call ftn_pytorch_on_warning(receive_warning)
   call wrong_files(trim(folder))
   call wrong_functions()
   call wrong_results()
   call wrong_arguments()
   call wrong_objects(trim(folder))

   if (number_wrong > 0) error stop "not every failure was told as expected"
   print "(a, i0, a)", "The program went on after each of ", number_told, " mistakes."
end program errors
