! SPDX-License-Identifier: MIT
!> Without stat a failure ends the program: exit code 1 and the whole reason on standard error.
!>
!> The argument says how: plain, with a registered handler, with errmsg but no stat, and after a handler was withdrawn.
!> The reason must end with the last line of the traceback, which the test looks for.
module stop_handler
   use, intrinsic :: iso_fortran_env, only : error_unit
   use ftn_pytorch
   implicit none
   private

   public :: handle

contains

   subroutine handle(code, text)
      integer, intent(in) :: code
      character(*), intent(in) :: text

      write (error_unit, "(a, i0, a, l1)") "handler: code ", code, ", traceback ", index(text, "Traceback") > 0
      if (code /= FTN_PYTORCH_ERR_PYTHON) write (error_unit, "(a)") "handler: wrong code"
   end subroutine handle
end module stop_handler

program test_stop
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : script
   use ftn_pytorch
   use stop_handler, only : handle
   implicit none

   type(torch_pymodule) :: model
   type(torch_tensor) :: tensor, other, list(2)
   type(torch_tensor), allocatable :: unallocated(:)
   type(torch_scope) :: scope, forgotten
   real(real64), target :: two(2), three(3)
   real(real32), target :: single(3)
   character(:), allocatable :: errmsg
   character(16) :: how
   real, pointer :: p(:)

   two = 2
   three = 3
   single = 3
   call get_command_argument(1, how)
   if (how == "warning") then
      ! a program that loads no module is warned, too
      call scope%begin("outer")
      call forgotten%begin("forgotten")
      call scope%end()
      stop
   end if
   if (how == "load") call model%load("no_such_script.py")
   call model%load(script("failing.py"))
   select case (how)
   case ("plain")
      call model%forward([torch_in(3)])
   case ("errmsg")
      call model%forward([torch_in(3)], errmsg=errmsg)
   case ("handler")
      call ftn_pytorch_on_error(handle)
      call model%forward([torch_in(3)])
   case ("withdrawn")
      call ftn_pytorch_on_error(handle)
      call ftn_pytorch_on_error()
      call model%forward([torch_in(3)])
   case ("function")
      print "(a)", tensor%dtype()
   case ("tensor")
      call tensor%to_array(p)
   case ("expression")
      call other%from_array(two)
      call tensor%from_array(three)
      other = torch_sum(tensor*2 - other)**2
      call other%print()
   case ("assign_shape")
      call other%from_array(two)
      call tensor%from_array(three)
      tensor = other
   case ("assign_type")
      call other%from_array(single)
      call tensor%from_array(three)
      tensor = other
   case ("assign_leaf")
      call tensor%from_array(three)
      call tensor%set_requires_grad()
      tensor = tensor*2
   case ("assign_list")
      list = [tensor, tensor, tensor]
   case ("unallocated")
      unallocated = [tensor, tensor]
   case ("scope")
      call scope%end()
   end select
   print "(a)", "the program went on"
end program test_stop
