! SPDX-License-Identifier: MIT
!> One rule of axis order for inputs, outputs, results and pointers, in both layouts.
!>
!> Arrays are not square, or square and not symmetric, so that a transposition cannot pass unnoticed.
program test_layout
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use check, only : expect, expect_status, finish, script, with_descriptors
   use ftn_pytorch
   implicit none

   call in_layout("reversed")
   call in_layout("same")
   call finish()

contains

   subroutine in_layout(layout)
      character(*), intent(in) :: layout

      type(torch_pymodule) :: model

      call model%load(script("layout.py"), layout=layout)
      call inputs(model, layout)
      call outputs(model, layout)
      call results(model, layout)
      call images(model, layout)
      call training(layout)
   end subroutine in_layout

   !> A tensor of either layout is trained itself
   subroutine training(layout)
      character(*), intent(in) :: layout

      type(torch_tensor) :: weights, other, scaling, cost
      type(torch_optimizer) :: optimizer
      real(real64), target :: w(2, 3), factors(2, 3)

      w = 1
      factors = reshape([1.0d0, 2.0d0, 3.0d0, 4.0d0, 5.0d0, 6.0d0], [2, 3])
      call weights%from_array(torch_out(w), layout=layout)
      call weights%set_requires_grad()
      call other%ones([2], dtype="float64", layout=layout, requires_grad=.true.)
      call optimizer%create("SGD", [weights, other], [torch_in("lr", 0.5d0)])
      call scaling%from_array(torch_in(factors), layout=layout)
      cost = torch_sum(weights*scaling) + torch_sum(other)
      call cost%backward()
      call optimizer%step()
      call expect(all(w == 1 - factors/2), layout // ": an optimizer changes the array")
   end subroutine training

   !> Which axis is first in Python
   subroutine inputs(model, layout)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: layout

      type(torch_results) :: found
      integer(int64), pointer :: extents(:)
      real(real64) :: x(2, 3), value
      logical :: contiguous

      x = reshape([11, 21, 12, 22, 13, 23], [2, 3])
      call model%call("shape_of", [torch_in(x)], found)
      call found%to_array(1, extents)
      call model%call("element", [torch_in(x), torch_in(1), torch_in(0)], found)
      call found%scalar(1, value)
      call model%call("is_contiguous", [torch_in(x)], found)
      call found%scalar(1, contiguous)
      call expect(contiguous .eqv. layout == "reversed", layout // ": contiguous in Python")
      call model%call("shape_of", [torch_in(x)], found)
      call found%to_array(1, extents)
      if (layout == "reversed") then
         call expect(all(extents == [3, 2]), "reversed: (2, 3) is (3, 2)")
         call expect(value == 12, "reversed: [1, 0] is (1, 2)")
      else
         call expect(all(extents == [2, 3]), "same: (2, 3) is (2, 3)")
         call expect(value == 21, "same: [1, 0] is (2, 1)")
      end if
   end subroutine inputs

   !> A result lands where it belongs, also when it is not contiguous
   subroutine outputs(model, layout)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: layout

      real(real64) :: x(2, 3), y(2, 3), t(3, 2), square(3, 3), s(3, 3), wide(4, 6)
      integer :: stat

      x = reshape([11, 21, 12, 22, 13, 23], [2, 3])
      square = reshape([11, 21, 31, 12, 22, 32, 13, 23, 33], [3, 3])
      t = 0
      call model%call("transposed", [torch_in(x)], [torch_out(t)])
      call expect(all(t == transpose(x)), layout // ": transposed")
      call model%call("transposed", [torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, layout // ": transposed does not fit")
      call model%call("transposed", [torch_in(square)], [torch_out(s)])
      call expect(all(s == transpose(square)), layout // ": transposed square")
      call model%call("product", [torch_in(square)], [torch_out(s)])
      call expect(all(s == matmul(square, square)), layout // ": product of a square with itself")
      wide = -1
      call model%call("transposed", [torch_in(x)], [torch_out(wide(1:3, 2:4:2))])
      call expect(all(wide(1:3, 2:4:2) == transpose(x)) .and. count(wide == -1) == 18, layout // ": into a section")
      call model%call("transposed", [torch_in(square(2:3, :))], [torch_out(t)])
      call expect(all(t == transpose(square(2:3, :))), layout // ": from a section")
      y = 0
      call model%call("write", [torch_in(x)], [torch_out(y)])
      call expect(all(y == x), layout // ": written in place")
      if (layout == "same") y = 0
      if (layout == "same") call model%call("every_second", [torch_in(x)], [torch_out(y)])
      call expect(all(y == x), layout // ": strided result")
   end subroutine outputs

   !> The same through pointers and tensors
   subroutine results(model, layout)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: layout

      type(torch_results) :: found
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      real(real64) :: x(2, 3), square(3, 3)
      real(real64), pointer :: p(:, :)
      integer :: stat

      x = reshape([11, 21, 12, 22, 13, 23], [2, 3])
      square = reshape([11, 21, 31, 12, 22, 32, 13, 23, 33], [3, 3])
      call list%create()
      call list%add_array(x)
      call model%forward(list, tensor)
      call expect(all(tensor%shape() == [2, 3]), layout // ": shape of a tensor")
      call tensor%to_array(p, stat=stat)
      if (can_point(stat, layout)) call expect(all(p == x + 1), layout // ": pointer to a tensor")
      call model%call("transposed", [torch_in(x)], found)
      call found%to_array(1, p, stat=stat)
      if (can_point(stat, layout)) call expect(all(p == transpose(x)), layout // ": pointer to a transposed result")
      call model%call("product", [torch_in(square)], found)
      call found%to_array(1, p, stat=stat)
      if (can_point(stat, layout)) call expect(all(p == matmul(square, square)), layout // ": pointer to a product")
      call found%copy_to(1, square)
      call expect(square(1, 2) /= square(2, 1), layout // ": copy of a product")
      call found%get(1, tensor)
      call model%call("transposed", [tensor%arg()], found)
      call found%copy_to(1, x(:, 1:2), stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, layout // ": shapes are compared in Fortran order")
   end subroutine results

   !> A batch of images whose memory has another order than its axes
   subroutine images(model, layout)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: layout

      type(torch_results) :: found
      real(real64) :: x(5, 4, 3, 2), y(5, 4, 3, 2)
      real(real64), pointer :: p(:, :, :, :)
      integer :: i, stat

      x = reshape([(real(i, real64), i=1, size(x))], shape(x))
      y = 0
      call model%call("channels_last", [torch_in(x)], [torch_out(y)])
      call expect(all(y == x), layout // ": channels_last result")
      call model%call("channels_last", [torch_in(x)], found)
      call found%to_array(1, p, stat=stat)
      if (can_point(stat, layout)) call expect(all(p == x), layout // ": pointer to a channels_last result")
   end subroutine images

   !> Compilers without descriptors have no pointers with strides, and say so
   function can_point(stat, layout) result(can)
      integer, intent(in) :: stat
      character(*), intent(in) :: layout
      logical :: can

      can = stat == FTN_PYTORCH_OK
      if (can) return
      call expect(.not. with_descriptors(), layout // ": pointer into strided memory")
      call expect_status(stat, FTN_PYTORCH_ERR_STRIDE, layout // ": refusal of a pointer into strided memory")
   end function can_point
end program test_layout
