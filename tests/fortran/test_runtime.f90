! SPDX-License-Identifier: MIT
!> Start, version, diagnosis, threads and warnings of the library as a whole.
module warning_collector
   implicit none
   private

   public :: collect, last_warning, warnings

   character(:), allocatable :: last_warning
   integer :: warnings = 0

contains

   subroutine collect(text)
      character(*), intent(in) :: text

      last_warning = text
      warnings = warnings + 1
   end subroutine collect
end module warning_collector

program test_runtime
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use warning_collector
   implicit none

   call tells_its_version()
   call refuses_a_python_that_is_not_there()
   call starts_more_than_once()
   call diagnoses()
   call sets_threads()
   call warns()
   call finish()

contains

   subroutine tells_its_version()
      character(:), allocatable :: version

      version = ftn_pytorch_version()
      call expect(index(version, ".") > 1 .and. verify(version, "0123456789.") == 0, "version " // version)
   end subroutine tells_its_version

   subroutine refuses_a_python_that_is_not_there()
      character(:), allocatable :: errmsg
      integer :: stat

      call ftn_pytorch_init("/no/such/python", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INTERPRETER, "a Python that is not there", errmsg, "/no/such/python")
   end subroutine refuses_a_python_that_is_not_there

   subroutine starts_more_than_once()
      integer :: stat

      call ftn_pytorch_init(stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "start")
      call ftn_pytorch_init(stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "start again")
   end subroutine starts_more_than_once

   subroutine diagnoses()
      character(200) :: line
      integer :: unit, iostat, stat
      logical :: has_version

      open (newunit=unit, status="scratch", action="readwrite")
      call ftn_pytorch_diagnose(unit, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "diagnosis")
      rewind (unit)
      has_version = .false.
      do
         read (unit, "(a)", iostat=iostat) line
         if (iostat /= 0) exit
         has_version = has_version .or. index(line, ftn_pytorch_version()) > 0
      end do
      close (unit)
      call expect(has_version, "the diagnosis names the version")
      call ftn_pytorch_diagnose()
   end subroutine diagnoses

   subroutine sets_threads()
      integer :: stat

      call ftn_pytorch_set_threads(1, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "one thread")
      call ftn_pytorch_set_threads(0, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no thread")
   end subroutine sets_threads

   subroutine warns()
      type(torch_pymodule) :: model
      real(real64) :: x(3)

      x = 1
      call model%load(script("keeping.py"))
      call ftn_pytorch_on_warning(collect)
      call model%call("warn", [torch_in("careful")])
      call expect(warnings == 1, "a warning of the script arrives")
      if (warnings > 0) call expect(last_warning == "careful", "text of a warning")
      call model%forward([torch_in(x)])
      call expect(warnings == 2, "storage that a script keeps is reported")
      if (warnings > 1) call expect_text(last_warning, "x.copy()", "storage that a script keeps: what to do")
      call ftn_pytorch_on_warning()
      call model%call("warn", [torch_in("this line belongs on standard error")])
      call expect(warnings == 2, "a withdrawn receiver hears nothing")
   end subroutine warns
end program test_runtime
