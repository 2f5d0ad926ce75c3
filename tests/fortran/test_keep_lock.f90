! SPDX-License-Identifier: MIT
!> A program in which other code uses Python and never asks for its lock: ftn_pytorch_init(keep_lock=.true.).
module naive_python
   use, intrinsic :: iso_c_binding, only : c_char, c_f_procpointer, c_funptr, c_int, c_null_char, c_null_ptr, c_ptr
   implicit none
   private

   public :: run_naively, end_naively, warnings, count_warning

   integer :: warnings = 0

   abstract interface
      subroutine of_nothing() bind(c)
         implicit none
      end subroutine of_nothing

      function of_text(code, flags) bind(c) result(failed)
         import :: c_char, c_int, c_ptr
         implicit none
         character(kind=c_char), intent(in) :: code(*)
         type(c_ptr), value :: flags
         integer(c_int) :: failed
      end function of_text

      function ending() bind(c) result(failed)
         import :: c_int
         implicit none
         integer(c_int) :: failed
      end function ending
   end interface

   interface
      function dlsym(library, name) bind(c) result(found)
         import :: c_char, c_funptr, c_ptr
         implicit none
         type(c_ptr), value :: library
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr) :: found
      end function dlsym
   end interface

contains

   function function_of_python(name) result(found)
      character(*), intent(in) :: name
      type(c_funptr) :: found

      found = dlsym(c_null_ptr, name // c_null_char)
   end function function_of_python

   !> What a component does that thinks that it is alone. Whether its code has run
   logical function run_naively(code)
      character(*), intent(in) :: code

      procedure(of_nothing), pointer :: initialize
      procedure(of_text), pointer :: run_code

      call c_f_procpointer(function_of_python("Py_Initialize"), initialize)
      call c_f_procpointer(function_of_python("PyRun_SimpleStringFlags"), run_code)
      call initialize()
      run_naively = run_code(code // c_null_char, c_null_ptr) == 0
   end function run_naively

   !> It ends Python. Whether that has worked
   logical function end_naively()
      procedure(ending), pointer :: finalize

      call c_f_procpointer(function_of_python("Py_FinalizeEx"), finalize)
      end_naively = finalize() == 0
   end function end_naively

   subroutine count_warning(text)
      character(*), intent(in) :: text

      if (index(text, "keep_lock") > 0) warnings = warnings + 1
   end subroutine count_warning
end module naive_python

program test_keep_lock
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use naive_python
   implicit none

   type(torch_pymodule) :: model
   real(real64), target :: x(3, 5), y(5), target_values(5)
   integer :: stat, i
   character(:), allocatable :: errmsg
   character(8) :: argument
   logical :: has_plugin

   call get_command_argument(1, argument)
   has_plugin = argument == "plugin"
   x = reshape([(real(i, real64)/15, i=1, size(x))], shape(x))
   target_values = sum(x, dim=1)
   call ftn_pytorch_on_warning(count_warning)
   call ftn_pytorch_init(keep_lock=.true., stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_OK, "the lock is kept", errmsg)
   call expect(run_naively("import sys"), "others use Python before a script is loaded")
   call model%load(script("beside_another.py"))

   call goes_on_in_turns()
   call threads_run_in_calls()
   call program_differentiates()
   call team_computes_without_python()
   call team_is_refused()
   call background_trains_in_calls()
   call diagnosis_tells()
   call may_be_given_back()
   call is_over_when_others_end_it()
   call finish()

contains

   subroutine goes_on_in_turns()
      real(real64) :: loss, first
      integer :: step
      logical :: completed

      do step = 1, 20
         completed = model%train([torch_in(x)], [torch_in(target_values)], loss)
         if (step == 1) first = loss
         call expect(run_naively("shared = [1, 2, 3]; del shared"), "others use Python between calls")
      end do
      call expect(loss < first, "training goes on")
      call model%forward([torch_in(x)], [torch_out(y)])
      call model%call("missing", stat=stat)
      call expect(stat /= FTN_PYTORCH_OK .and. run_naively("pass"), "others go on after a failure")
   end subroutine goes_on_in_turns

   subroutine threads_run_in_calls()
      integer :: counted

      call model%call("thread_counts", outputs=[torch_out(counted)])
      call expect(counted > 0, "threads of the script run during a call")
   end subroutine threads_run_in_calls

   !> torch refuses backward to who holds the lock
   subroutine program_differentiates()
      type(torch_tensor) :: w, loss, gradient
      real(real64), pointer :: found(:)

      call w%ones([3], dtype="float64")
      call w%set_requires_grad()
      loss = torch_sum(w*w)
      call loss%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "backward", errmsg)
      call w%grad(gradient)
      call gradient%to_array(found)
      call expect(all(abs(found - 2) < 1e-12), "gradients")
   end subroutine program_differentiates

   !> Tensors of libtorch need no Python, and so no lock
   subroutine team_computes_without_python()
      integer :: wrong

      if (.not. has_plugin) return
      wrong = 0
      !$omp parallel num_threads(4) reduction(+:wrong)
      block
         type(torch_scope) :: scope
         type(torch_tensor) :: ones, total
         real(real64) :: found
         integer :: status

         call scope%begin()
         call ones%ones([7], stat=status)
         if (status == FTN_PYTORCH_OK) then
            total = torch_sum(ones)
            call total%item(found, stat=status)
         end if
         if (status /= FTN_PYTORCH_OK) then
            wrong = wrong + 1
         else if (nint(found) /= 7) then
            wrong = wrong + 1
         end if
         call scope%end()
      end block
      !$omp end parallel
      call expect(wrong == 0, "all threads compute with tensors of libtorch")
   end subroutine team_computes_without_python

   !> Without a hang, whoever comes first
   subroutine team_is_refused()
      integer :: refused, served, others

      refused = 0
      served = 0
      others = 0
      !$omp parallel num_threads(4) reduction(+:refused, served, others)
      block
         real(real64) :: mine(5)
         integer :: status, call_number

         do call_number = 1, 20
            call model%forward([torch_in(x)], [torch_out(mine)], stat=status)
            if (status == FTN_PYTORCH_OK) then
               served = served + 1
            else if (status == FTN_PYTORCH_ERR_INTERPRETER) then
               refused = refused + 1
            else
               others = others + 1
            end if
         end do
      end block
      !$omp end parallel
      call expect(served == 20 .and. refused == 60 .and. others == 0, "the thread that keeps the lock is served")
   end subroutine team_is_refused

   subroutine background_trains_in_calls()
      integer :: steps

      do i = 1, 3
         call model%call("submit", [torch_in(x), torch_in(target_values)])
      end do
      call model%call("learnt", outputs=[torch_out(steps)])
      call expect(steps == 3, "a thread of the kit trains during calls")
      call expect(warnings == 1, "and a warning says that it does so during calls only")
   end subroutine background_trains_in_calls

   subroutine diagnosis_tells()
      character(200) :: line
      integer :: unit, iostat
      logical :: tells

      open (newunit=unit, status="scratch", action="readwrite")
      call ftn_pytorch_diagnose(unit)
      rewind (unit)
      tells = .false.
      do
         read (unit, "(a)", iostat=iostat) line
         if (iostat /= 0) exit
         tells = tells .or. index(line, "interpreter lock") > 0
      end do
      close (unit)
      call expect(tells, "the diagnosis tells that the lock is kept")
   end subroutine diagnosis_tells

   subroutine may_be_given_back()
      integer :: failures

      call ftn_pytorch_init(keep_lock=.false.)
      failures = 0
      !$omp parallel num_threads(4) reduction(+:failures)
      block
         real(real64) :: mine(5)
         integer :: status

         call model%forward([torch_in(x)], [torch_out(mine)], stat=status)
         if (status /= FTN_PYTORCH_OK) failures = failures + 1
      end block
      !$omp end parallel
      call expect(failures == 0, "all threads are served when nobody keeps the lock")
      call ftn_pytorch_init(keep_lock=.true.)
   end subroutine may_be_given_back

   subroutine is_over_when_others_end_it()
      call expect(end_naively(), "others end Python")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "a call after the end of Python", errmsg)
      call expect_text(errmsg, "has ended the Python", "a call after the end of Python: why")
      call ftn_pytorch_init(stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "init after the end of Python")
      call expect(.not. model%has("step"), "nothing is there after the end of Python")
      call team_computes_without_python()
      call model%free()
   end subroutine is_over_when_others_end_it
end program test_keep_lock
