! SPDX-License-Identifier: MIT
!> What cannot cross is refused with its own status and a text that says why, and the next correct call works.
program test_refused
   use, intrinsic :: iso_fortran_env, only : compiler_version, int32, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type :: cell
      integer(int32) :: id = 0
      real(real64) :: t = 0
   end type cell

   type :: spin
      complex(real32) :: c = 0
      real(real32) :: r = 0
   end type spin

   integer, parameter :: wide = selected_real_kind(18)
   type(torch_pymodule) :: model

   call model%load(script("look.py"))
   call without_memory()
   call without_counterpart()
   call of_wrong_form()
   call with_bad_names()
   call finish()

contains

   !> Unallocated arrays, disassociated pointers, null components
   subroutine without_memory()
      real(real64), allocatable :: a(:, :), s
      real(real64), pointer :: p(:)
      integer(int32), allocatable :: i(:)
      character(:), allocatable :: text

      nullify (p)
      call refused(torch_in(a), FTN_PYTORCH_ERR_UNALLOCATED, "unallocated array", "allocate")
      call refused(torch_in(s), FTN_PYTORCH_ERR_UNALLOCATED, "unallocated scalar", "allocate")
      call refused(torch_in(p), FTN_PYTORCH_ERR_UNALLOCATED, "disassociated pointer", "associate")
      call refused(torch_out(i), FTN_PYTORCH_ERR_UNALLOCATED, "unallocated output", "allocate")
      call refused(torch_copy(a), FTN_PYTORCH_ERR_UNALLOCATED, "copy of an unallocated array", "allocate")
      call refused(torch_in("x", a), FTN_PYTORCH_ERR_UNALLOCATED, "named unallocated array", """x""")
      call refused(torch_in(text), FTN_PYTORCH_ERR_UNALLOCATED, "unallocated text", "allocate")
      call of_nothing([real(real64) ::])
   end subroutine without_memory

   !> gfortran gives an empty array constructor no memory; other compilers may
   subroutine of_nothing(x)
      real(real64), intent(in) :: x(:)

      if (index(compiler_version(), "GCC") > 0) call refused(torch_in(x), FTN_PYTORCH_ERR_UNALLOCATED, &
         "an array constructor without elements", "describe a variable of size 0")
   end subroutine of_nothing

   !> Types and kinds that Python has not
   subroutine without_counterpart()
      logical :: l(3)
      real(wide) :: r(2)
      type(cell) :: c(2)
      character(4) :: t(2)

      l = .true.
      r = 0
      t = "text"
      call refused(torch_in(l), FTN_PYTORCH_ERR_KIND, "default logical array", "logical(c_bool)")
      call refused(torch_out(l), FTN_PYTORCH_ERR_KIND, "default logical output", "logical(c_bool)")
      call refused(torch_in(r), FTN_PYTORCH_ERR_KIND, "extended precision", "real(kind=")
      call refused(torch_in(c), FTN_PYTORCH_ERR_KIND, "derived type", "a derived type")
      call refused(torch_in(t), FTN_PYTORCH_ERR_KIND, "array of texts", "character")
   end subroutine without_counterpart

   !> Rank, extents and strides
   subroutine of_wrong_form()
      real(real64) :: x(2, 1, 1, 1, 1, 1, 1, 1), y(4)
      type(spin) :: spins(3)

      x = 0
      y = 0
      call refused(torch_in(x), FTN_PYTORCH_ERR_RANK, "rank 8", "at most 7")
      call refused(torch_in(y(4:1:-1)), FTN_PYTORCH_ERR_STRIDE, "negative stride", "torch_copy")
      call refused(torch_in(spins%c), FTN_PYTORCH_ERR_STRIDE, "8 bytes every 12 bytes", "torch_copy")
      call refused(torch_out(spins%c), FTN_PYTORCH_ERR_STRIDE, "such an output", "pass an array of its own")
      call refused(torch_out(y(4:1:-1)), FTN_PYTORCH_ERR_STRIDE, "negative stride, written to", "pass the array itself")
      call of_assumed_size(y)
   end subroutine of_wrong_form

   subroutine of_assumed_size(x)
      real(real64) :: x(*)

      call refused(torch_in(x), FTN_PYTORCH_ERR_ARGUMENT, "assumed size", "x(1:n)")
   end subroutine of_assumed_size

   !> Names of arguments
   subroutine with_bad_names()
      real(real64) :: x(2)

      x = 0
      call refused(torch_in("", x), FTN_PYTORCH_ERR_ARGUMENT, "empty name", "name")
      call refused(torch_in(repeat("n", 64), x), FTN_PYTORCH_ERR_ARGUMENT, "long name", "64")
      call refused(torch_in(5, x), FTN_PYTORCH_ERR_ARGUMENT, "name that is no text", "name")
   end subroutine with_bad_names

   subroutine refused(x, code, what, reason)
      type(torch_arg), target :: x
      integer, intent(in) :: code
      character(*), intent(in) :: what, reason

      type(torch_results) :: results
      character(:), allocatable :: errmsg
      real(real64) :: good(3), answer
      integer :: stat

      call model%call("look", [x], results, stat=stat, errmsg=errmsg)
      call expect_status(stat, code, what // ": status", errmsg)
      if (stat /= 0) call expect_text(errmsg, reason, what // ": reason")
      good = 2
      call model%call("total", [torch_in(good)], results, stat=stat)
      call results%scalar(1, answer, stat=stat)
      call expect(answer == 6, what // ": the next call works")
   end subroutine refused
end program test_refused
