! SPDX-License-Identifier: MIT
!> Rows outside of what a network has learnt, from the file of the network, in each format.
program test_learnt_range
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real32
   use, intrinsic :: ieee_arithmetic, only : ieee_quiet_nan, ieee_value
   use check, only : expect, finish
   use ftn_pytorch
   implicit none

   integer, parameter :: rows = 7
   real(real32) :: x(3, rows)
   logical(c_bool) :: expected(rows)

   x = spread([1.0, 0.0, 0.2], 2, rows)
   expected = .false.
   x(:, 2) = [2.0, -1.0, 0.3]                        ! what was learnt itself
   x(1, 3) = -0.001
   x(2, 4) = 1.5
   x(3, 5) = ieee_value(1.0, ieee_quiet_nan)
   x(3, 6) = nearest(0.3, 1.0)
   expected(3:6) = .true.
   call tells_them("learnt_range.pt")
   call tells_them("learnt_range.pt2")
   call tells_them("learnt_range.onnx")
   call tells_them("learnt_range.ftr")
   call finish()

contains

   subroutine tells_them(file)
      character(*), intent(in) :: file

      type(torch_module) :: net
      real(real32) :: y(rows), again(4)
      logical(c_bool) :: outside(rows), few(4)

      y = 0
      outside = .false.
      call net%load(file)
      call net%forward([torch_in(x)], [torch_out(y), torch_out(outside)])
      call expect(logical(all(outside .eqv. expected)), file//": rows outside")
      call expect(all(abs(y([1, 2, 3, 4, 6, 7]) - sum(x(:, [1, 2, 3, 4, 6, 7]), 1)) < 1e-6), file//": the prediction")
      call net%forward([torch_in(x(:, 4:))], [torch_out(again), torch_out(few)])
      call expect(logical(all(few .eqv. expected(4:))), file//": another number of rows")
   end subroutine tells_them
end program test_learnt_range
