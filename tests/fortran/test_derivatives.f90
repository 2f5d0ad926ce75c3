! SPDX-License-Identifier: MIT
!> Tangents, adjoints and Jacobians of functions of a script on plain arrays.
program test_derivatives
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call random_init(repeatable=.true., image_distinct=.true.)
   call model%load(script("derivatives.py"))
   call adjoint_fits_the_tangent("reversed")
   call adjoint_fits_the_tangent("same")
   call tangent_is_the_limit_of_differences()
   call several_inputs_and_outputs()
   call jacobian_in_fortran_order()
   call in_single_precision()
   call parameters_are_left_alone()
   call refused()
   call finish()

contains

   !> <M dx, dy> = <dx, M^T dy>
   subroutine adjoint_fits_the_tangent(layout)
      character(*), intent(in) :: layout

      type(torch_pymodule) :: other
      real(real64), target :: x(3, 5), dx(3, 5), ax(3, 5), mdx(2, 5), dy(2, 5)
      real(real64), target :: x_same(5, 3), dx_same(5, 3), ax_same(5, 3), mdx_same(5, 2), dy_same(5, 2)

      call random_number(x)
      call random_number(dx)
      call random_number(dy)
      call other%load(script("derivatives.py"), layout=layout)
      if (layout == "reversed") then
         call other%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(dx)], [torch_out(mdx)])
         call other%adjoint("ftn_pytorch_forward", [torch_in(x)], [torch_in(dy)], [torch_out(ax)])
      else
         x_same = transpose(x)
         dx_same = transpose(dx)
         dy_same = transpose(dy)
         call other%tangent("ftn_pytorch_forward", [torch_in(x_same)], [torch_in(dx_same)], [torch_out(mdx_same)])
         call other%adjoint("ftn_pytorch_forward", [torch_in(x_same)], [torch_in(dy_same)], [torch_out(ax_same)])
         mdx = transpose(mdx_same)
         ax = transpose(ax_same)
      end if
      call expect(any(abs(mdx) > 0.01), "the tangent is not nothing")
      call expect(abs(sum(mdx*dy) - sum(dx*ax)) <= 1e-12_real64*abs(sum(mdx*dy)), "dot-product test, layout " // layout)
   end subroutine adjoint_fits_the_tangent

   subroutine tangent_is_the_limit_of_differences()
      real(real64), parameter :: step = 1e-6_real64
      real(real64), target :: x(3, 4), dx(3, 4), dy(2, 4), y(2, 4, 2), shifted(3, 4)

      call random_number(x)
      call random_number(dx)
      call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(dx)], [torch_out(dy)])
      shifted = x + step*dx
      call model%forward([torch_in(shifted)], [torch_out(y(:, :, 1))])
      shifted = x - step*dx
      call model%forward([torch_in(shifted)], [torch_out(y(:, :, 2))])
      call expect(all(abs(dy - (y(:, :, 1) - y(:, :, 2))/(2*step)) < 1e-8_real64), "tangent and differences")
   end subroutine tangent_is_the_limit_of_differences

   !> Numbers are no directions; a tangent has the names of the results, an adjoint the order of the inputs
   subroutine several_inputs_and_outputs()
      real(real64), target :: x(4), y(4), dx(4), dy(4), scaled(4), total, ax(4), ay(4)

      call random_number(x)
      call random_number(y)
      dx = [1, 2, 3, 4]
      dy = [4, 3, 2, 1]
      call model%tangent("product", [torch_in(x), torch_in(y), torch_in(2.0_real64), torch_in("times", 3)], &
         [torch_in(dx), torch_in(dy)], [torch_out("total", total), torch_out("scaled", scaled)])
      call expect(all(abs(scaled - 2*(dx*y + x*dy)) < 1e-14_real64), "tangent of the first result")
      call expect(abs(total - 3*sum(dx)) < 1e-14_real64, "tangent of the second result")

      scaled = [1, -1, 2, -2]
      total = 0.5_real64
      call model%adjoint("product", [torch_in(x), torch_in(y), torch_in(2.0_real64), torch_in("times", 3)], &
         [torch_in(scaled), torch_in(total)], [torch_out(ax), torch_out(ay)])
      call expect(all(abs(ax - (2*y*scaled + 3*total)) < 1e-14_real64), "adjoint for the first input")
      call expect(all(abs(ay - 2*x*scaled) < 1e-14_real64), "adjoint for the second input")
   end subroutine several_inputs_and_outputs

   subroutine jacobian_in_fortran_order()
      real(real64), target :: x(3), j(3, 3), field(3, 1), outer(3, 1, 2, 1), dx(3, 1), dy(2, 1)
      integer :: i

      x = [1, 2, 3]
      call model%jacobian("squares", [torch_in(x)], [torch_out(j)])
      call expect(all([(abs(j(i, i) - 2*x(i)) < 1e-14_real64, i=1, 3)]), "Jacobian of squares: diagonal")
      call expect(abs(sum(j) - 12) < 1e-14_real64, "Jacobian of squares: the rest")

      call random_number(field)
      call model%jacobian("ftn_pytorch_forward", [torch_in(field)], [torch_out(outer)])
      do i = 1, 3
         dx = 0
         dx(i, 1) = 1
         call model%tangent("ftn_pytorch_forward", [torch_in(field)], [torch_in(dx)], [torch_out(dy)])
         call expect(all(abs(outer(i, 1, :, 1) - dy(:, 1)) < 1e-14_real64), "input first, then result")
      end do
   end subroutine jacobian_in_fortran_order

   subroutine in_single_precision()
      real(real32), target :: x(3), dx(3), dy(3)

      x = [1, 2, 3]
      dx = 1
      call model%tangent("squares", [torch_in(x)], [torch_in(dx)], [torch_out(dy)])
      call expect(all(abs(dy - 2*x) < 1e-6), "single precision")
   end subroutine in_single_precision

   subroutine parameters_are_left_alone()
      logical(c_bool), target :: found

      call model%call("has_gradients", outputs=[torch_out(found)])
      call expect(.not. logical(found), "no parameter has collected a gradient")
   end subroutine parameters_are_left_alone

   subroutine refused()
      real(real64), target :: x(3, 2), dx(3, 2), dy(2, 2), wide(3, 3)
      real(real32), target :: narrow(3, 2)
      character(:), allocatable :: errmsg
      integer :: stat

      x = 1
      dx = 1
      dy = 1
      wide = 1
      narrow = 1
      call model%tangent("out_of_sight", [torch_in(x)], [torch_in(dx)], [torch_out(dy)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "tangent of what torch does not follow", errmsg)
      call expect_text(errmsg, "inference_mode", "tangent of what torch does not follow")
      call model%adjoint("out_of_sight", [torch_in(x)], [torch_in(dy)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "adjoint of what torch does not follow", errmsg)
      call model%adjoint("rounded", [torch_in(x)], [torch_in(dx)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "adjoint of integers", errmsg)
      call model%tangent("product", [torch_in(x), torch_in(x), torch_in(2.0_real64), torch_in(3)], [torch_in(dx)], &
         [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "too few directions", errmsg)
      call expect_text(errmsg, "1 tangents were given, but product has 2", "too few directions")
      call model%tangent("squares", [torch_in(x)], [torch_in(wide)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "direction of another shape", errmsg, "Fortran (3, 3)")
      call expect_text(errmsg, "(2, 3)", "direction of another shape: in Python order")
      call model%tangent("squares", [torch_in(x)], [torch_in(narrow)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "direction of another type", errmsg)
      call model%adjoint("squares", [torch_in(x)], [torch_in(wide)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "gradient of another shape", errmsg)
      call model%jacobian("product", [torch_in(x), torch_in(x), torch_in(1.0_real64), torch_in(1)], [torch_out(dx)], &
         stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "Jacobian of several inputs", errmsg)
      call model%adjoint("sqaures", [torch_in(x)], [torch_in(dx)], [torch_out(dx)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "no such function", errmsg, "did you mean 'squares'")
   end subroutine refused
end program test_derivatives
