! SPDX-License-Identifier: MIT
!> The ways a Fortran program ends. The exit code is the program's, and what Python has in its buffers and among its
!> exit functions is not lost. The argument says which way.
module procedures_of_the_end
   use ftn_pytorch
   implicit none
   private

   public :: twice

contains

   subroutine twice(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      outputs(1) = inputs(1)*2
      stat = 0
   end subroutine twice
end module procedures_of_the_end

program test_end
   use, intrinsic :: iso_c_binding, only : c_int
   use check, only : script
   use ftn_pytorch
   use procedures_of_the_end, only : twice
   implicit none

   interface
      subroutine c_exit(code) bind(c, name="exit")
         import :: c_int
         implicit none
         integer(c_int), value :: code
      end subroutine c_exit
      subroutine c_abort() bind(c, name="abort")
         implicit none
      end subroutine c_abort
      function c_raise(signal) result(failure) bind(c, name="raise")
         import :: c_int
         implicit none
         integer(c_int), value :: signal
         integer(c_int) :: failure
      end function c_raise
   end interface

   type(torch_pymodule) :: model
   type(torch_scope) :: scope
   character(20) :: way
   integer :: stat

   call get_command_argument(1, way)
   select case (way)
   case ("freed", "abort", "signal", "thread", "failure", "stat")
      call model%load(script("ending_plain.py"))
   case default
      call model%load(script("ending.py"))
   end select
   call model%call("prints")
   select case (way)
   case ("stop")
      stop 3
   case ("error_stop")
      error stop 4
   case ("exit")
      call c_exit(5_c_int)
   case ("abort")
      call c_abort()
   case ("signal")
      if (c_raise(15_c_int) /= 0) error stop "raise"
   case ("thread")
      call model%call("fails_in_a_thread")
   case ("failure")
      call model%call("fails")
   case ("stat")
      call model%call("fails", stat=stat)
      if (stat /= FTN_PYTORCH_ERR_PYTHON) error stop "stat"
   case ("busy_threads")
      call model%call("starts_threads")
      stop 6
   case ("shared")
      call model%call("shares")
   case ("shared_failure")
      call model%call("shares_and_fails", stat=stat)
   case ("procedure", "open_scope")
      call torch_register("twice", twice)
      call scope%begin("at the end")
      if (way == "procedure") call scope%end()
      call model%call("calls_at_exit")
      stop 7
   case ("freed")
      call model%free()
   end select
end program test_end
