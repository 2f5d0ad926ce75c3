! SPDX-License-Identifier: MIT
!> Forms of calls that FTorch had before 1.1, and those that are to follow 1.1.
module ftorch_forms
   use, intrinsic :: iso_c_binding, only : c_associated, c_null_char
   use, intrinsic :: iso_fortran_env, only : int32, real32, real64
   use check, only : expect
   use ftorch
   implicit none
   public

contains

   !> The layout before the device, behind it, and none
   subroutine orders()
      type(torch_tensor) :: t
      real(real32), target :: x(2, 3)
      integer(int32), target :: n(2, 3), line(4)
      integer(ftorch_int) :: layout(2)

      layout = [2, 1]
      call torch_tensor_from_array(t, x, torch_kCPU)
      call expect(all(t%get_stride() == [1, 2]) .and. .not. t%requires_grad(), "no layout")
      call torch_tensor_from_array(t, x, torch_kCPU, -1, .true.)
      call expect(all(t%get_stride() == [1, 2]) .and. t%requires_grad(), "no layout, all arguments")
      call torch_tensor_from_array(t, x, torch_kCPU, requires_grad=.true.)
      call expect(all(t%get_stride() == [1, 2]) .and. t%requires_grad(), "no layout, by name")
      call torch_tensor_from_array(t, x, layout, torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]) .and. .not. t%requires_grad(), "the layout before the device")
      call torch_tensor_from_array(t, x, layout, torch_kCPU, -1, .true.)
      call expect(all(t%get_stride() == [3, 1]) .and. t%requires_grad(), "the layout before the device, all arguments")
      call torch_tensor_from_array(t, x, layout, device_type=torch_kCPU, requires_grad=.true.)
      call expect(all(t%get_stride() == [3, 1]) .and. t%requires_grad(), "the layout before the device, by name")
      call torch_tensor_from_array(t, x, torch_kCPU, -1, layout)
      call expect(all(t%get_stride() == [3, 1]) .and. .not. t%requires_grad(), "the layout behind the device")
      call torch_tensor_from_array(t, x, torch_kCPU, -1, layout, .true.)
      call expect(all(t%get_stride() == [3, 1]) .and. t%requires_grad(), "the layout behind the device, all arguments")
      call torch_tensor_from_array(t, x, torch_kCPU, layout=layout)
      call expect(all(t%get_stride() == [3, 1]) .and. .not. t%requires_grad(), "the layout behind the device, by name")
      call torch_tensor_from_array(t, x, layout=layout, device_type=torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]), "device and layout by name")
      call torch_tensor_from_array(tensor=t, data_in=n, layout=layout, device_type=torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]) .and. t%get_dtype() == torch_kInt32, "all by name")
      call torch_tensor_from_array(t, n, layout, torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]) .and. t%get_dtype() == torch_kInt32, "an array of the layout's type")
      call torch_tensor_from_array(t, line, [1], torch_kCPU)
      call expect(all(t%get_shape() == [4]) .and. all(t%get_stride() == [1]), "and of its rank")
      call torch_tensor_from_array_legacy(t, x, layout, torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]), "the old order by the name that it is to have")
   end subroutine orders

   !> Pointers, dummy arguments, components and sections; a variable without target is refused by the compiler
   subroutine variables()
      type :: state
         real(real32), allocatable :: x(:)
         real(real32), pointer :: p(:)
      end type state
      type(state), target :: s
      type(torch_tensor) :: t

      allocate (s%x(5), s%p(5))
      call torch_tensor_from_array(t, s%x, torch_kCPU)
      call torch_tensor_zero(t)
      call expect(all(s%x == 0), "a component")
      s%p = 1
      call torch_tensor_from_array(t, s%p, torch_kCPU)
      call torch_tensor_zero(t)
      call expect(all(s%p == 0), "a component that is a pointer")
      s%x = 1
      call torch_tensor_from_array(t, s%x(2:4:2), torch_kCPU)
      call torch_tensor_zero(t)
      call expect(all(s%x == [1, 0, 1, 0, 1]), "a section")
      call dummy(s%x, t)
      call expect(all(s%x == 2), "a dummy argument")
      deallocate (s%p)
   end subroutine variables

   subroutine dummy(x, t)
      real(real32), intent(inout), target :: x(:)
      type(torch_tensor), intent(inout) :: t

      call torch_tensor_from_array(t, x, [1], torch_kCPU)
      call torch_tensor_zero(t)
      x = x + 2
   end subroutine dummy

   !> A model without a device, and a file name that ends as in C
   subroutine without_device()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x(5), y(5)

      x = 1
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_load(model, "ftorch_scaled.pt")
      call torch_model_forward(model, in, out)
      call expect(all(y == [0, 1, 2, 3, 4]), "a model without a device")
      call torch_model_load(model, "ftorch_scaled.pt" // c_null_char // "rest", is_training=.true.)
      call expect(c_associated(model%p) .and. model%is_training(), "a file name that ends as in C")
   end subroutine without_device

   !> One tensor in place of a list
   subroutine single_tensors()
      type(torch_model) :: model
      type(torch_tensor) :: a, b, in(1), out(2)
      real(real32), target :: x(5), y(5), z(5)

      x = 1
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_tensor_from_array(out(2), z, torch_kCPU)
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      y = 0
      call torch_model_forward(model, a, b)
      call expect(all(y == [0, 1, 2, 3, 4]), "a tensor and a tensor")
      y = 0
      call torch_model_forward(model, in, b)
      call expect(all(y == [0, 1, 2, 3, 4]), "a list and a tensor")
      y = 0
      call torch_model_forward(model, a, out(:1))
      call expect(all(y == [0, 1, 2, 3, 4]), "a tensor and a list")
      y = 0
      call torch_model_forward(model, a + a, b)
      call expect(all(y == 2*[0, 1, 2, 3, 4]), "an expression and a tensor")
      call torch_model_load(model, "ftorch_split.pt", torch_kCPU)
      call torch_model_forward(model, a, out)
      call expect(all(y == 2) .and. all(z == 0), "a tensor and two results")
      call torch_tensor_array_delete(out)
      call expect(.not. c_associated(out(2)%p), "a list that is deleted by its old name")
   end subroutine single_tensors

   !> A tensor that becomes the result of a model
   subroutine single_with_gradients()
      type(torch_model) :: model
      type(torch_tensor) :: a, b, total, gradient
      real(real32), target :: x(5), y(5), z(5), sum_of(1)

      x = 1
      call torch_tensor_from_array(a, x, torch_kCPU, requires_grad=.true.)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_from_array(total, sum_of, torch_kCPU)
      call torch_tensor_from_array(gradient, z, torch_kCPU)
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      call torch_model_forward(model, a, b, requires_grad=.true.)
      call torch_tensor_sum(total, b)
      call torch_tensor_backward(total)
      call torch_tensor_get_gradient(gradient, a)
      call expect(sum_of(1) == 10 .and. all(z == [0, 1, 2, 3, 4]), "a single result has the graph")
   end subroutine single_with_gradients

   !> Fewer outputs than results, in each call as it comes
   subroutine fewer_outputs()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(2)
      real(real32), target :: x(5), y(5), z(5)
      integer :: i

      x = 3
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_tensor_from_array(out(2), z, torch_kCPU)
      call torch_model_load(model, "ftorch_split.pt", torch_kCPU)
      do i = 1, 3
         y = 0
         z = 9
         call torch_model_forward(model, in, out(:1))
         call expect(all(y == 6) .and. all(z == 9), "the first of two results")
         call torch_model_forward(model, in, out)
         call expect(all(y == 6) .and. all(z == 0), "both")
      end do
   end subroutine fewer_outputs

   !> A scalar result goes into an array of one element, of any rank and of a narrower type
   subroutine scalars()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), one(1), box(1), narrow(1)
      real(real64), target :: x(4), y(1), z(1, 1)
      real(real32), target :: single(1)
      integer :: i

      x = [1, 2, 3, 4]
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(one(1), y, torch_kCPU)
      call torch_tensor_from_array(box(1), z, torch_kCPU)
      call torch_tensor_from_array(narrow(1), single, torch_kCPU)
      call torch_model_load(model, "ftorch_total.pt", torch_kCPU)
      do i = 1, 3
         x = x + 1
         call torch_model_forward(model, in, one)
         call expect(y(1) == 10 + 4*i, "a scalar into (1)")
         call torch_model_forward(model, in, box)
         call expect(z(1, 1) == 10 + 4*i, "a scalar into (1, 1)")
         call torch_model_forward(model, in(1), narrow(1))
         call expect(single(1) == 10 + 4*i, "a scalar into a narrower type")
      end do
   end subroutine scalars
end module ftorch_forms

program test_ftorch_forms
   use check, only : finish
   use ftorch_forms
   implicit none

   call orders()
   call variables()
   call without_device()
   call single_tensors()
   call fewer_outputs()
   call scalars()
   call single_with_gradients()
   call finish()
end program test_ftorch_forms
