! SPDX-License-Identifier: MIT
!> Tensors as programs of FTorch use them: makers, questions, operators, assignment, and how long results live.
module ftorch_tensors
   use, intrinsic :: iso_c_binding, only : c_associated, c_int64_t, c_loc
   use, intrinsic :: iso_fortran_env, only : int16, int32, int64, int8, real32, real64
   use check, only : expect
   use ftn_pytorch, only : torch_out
   use ftorch
   use ftorch_tensor, only : torch_tensor_from_array_real32_2d, torch_tensor_from_array_real32_2d_default_layout
   use ftorch_types, only : torch_kUInt8
   implicit none
   public

   logical, save :: was_warned = .false.

contains

   subroutine makers()
      type(torch_tensor) :: t
      real(real32), target :: x(2, 3)

      call expect(.not. c_associated(t%p), "nothing before a maker")
      call torch_tensor_zeros(t, 2, [2_c_int64_t, 3_c_int64_t], torch_kFloat32, torch_kCPU)
      call expect(c_associated(t%p), "something after it")
      call expect(t%get_rank() == 2, "rank")
      call expect(all(t%get_shape() == [2, 3]), "shape in the order of Fortran")
      call expect(all(t%get_stride() == [3, 1]), "torch's own memory is in the order of C")
      call expect(t%get_dtype() == torch_kFloat32, "element type")
      call expect(t%get_device_type() == torch_kCPU .and. t%get_device_index() == -1, "device")
      call expect(.not. t%requires_grad(), "no gradients unless they are wanted")
      call t%t%copy_to(torch_out(x))
      call expect(all(x == 0), "zeros")
      call torch_tensor_ones(t, 2, [2_c_int64_t, 3_c_int64_t], torch_kFloat64, torch_kCPU, requires_grad=.true.)
      call expect(t%get_dtype() == torch_kFloat64 .and. t%requires_grad(), "another type, with gradients")
      call torch_tensor_empty(t, 1, [7_c_int64_t], torch_kInt8, torch_kCPU, device_index=-1)
      call expect(all(t%get_shape() == [7]) .and. t%get_dtype() == torch_kInt8, "a variable that had another tensor")
      call t%zero()
      call torch_tensor_empty(t, 1, [2_c_int64_t], torch_kUInt8, torch_kCPU)
      call expect(t%get_dtype() == torch_kUInt8, "a type that no array has")
      call torch_delete(t)
      call expect(.not. c_associated(t%p), "nothing after delete")
      call torch_delete(t)
   end subroutine makers

   subroutine shapes_stay()
      type(torch_tensor) :: t, u
      real(real32), target :: x(2, 3), y(4)
      integer(c_int64_t), pointer :: first(:), second(:)

      call torch_tensor_from_array(t, x, torch_kCPU)
      call torch_tensor_from_array(u, y, torch_kCPU)
      first => t%get_shape()
      second => u%get_shape()
      call expect(all(first == [2, 3]) .and. all(second == [4]), "a shape is there while another one is asked for")
   end subroutine shapes_stay

   subroutine arrays()
      type(torch_tensor) :: t
      real(real32), target :: x(2, 3), y(2, 3)
      real(real64), allocatable, target :: cube(:, :, :)
      integer(int16), pointer :: short(:)
      integer(int64), target :: six(1, 2, 1, 2, 1, 2)

      x = reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
      call torch_tensor_from_array(t, x, torch_kCPU)
      call expect(all(t%get_shape() == [2, 3]) .and. all(t%get_stride() == [1, 2]), "an array, as it lies there")
      x(2, 1) = 20
      call t%t%copy_to(torch_out(y))
      call expect(y(2, 1) == 20, "the tensor is the array")
      call torch_tensor_from_array(t, x, [2, 1], torch_kCPU)
      call expect(all(t%get_shape() == [2, 3]) .and. all(t%get_stride() == [3, 1]), "the other layout keeps the shape")
      call t%t%copy_to(torch_out(y))
      call expect(all([transpose(y)] == [x]), "and reads the memory in the other order")
      call torch_tensor_from_array(t, x, [2, 1, 3], torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]), "numbers of a layout that are too many")
      call torch_tensor_from_array_real32_2d_default_layout(t, x, torch_kCPU)
      call expect(all(t%get_stride() == [1, 2]), "the procedure for a kind and a rank, by its name")
      call torch_tensor_from_array_real32_2d(t, x, [2, 1], torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]), "and with a layout")
      call torch_tensor_from_array(t, x(1:1, ::2), torch_kCPU)
      call expect(all(t%get_shape() == [1, 2]) .and. t%get_dtype() == torch_kFloat32, "a section")
      call t%zero()
      call expect(x(1, 1) == 0 .and. x(1, 2) == 3 .and. x(1, 3) == 0, "writing into a section")
      allocate (cube(2, 3, 4))
      call torch_tensor_from_array(t, cube, [3, 1, 2], torch_kCPU)
      call expect(all(t%get_stride() == [4, 8, 1]), "three axes in another order")
      allocate (short(3))
      call torch_tensor_from_array(t, short, torch_kCPU)
      call expect(t%get_dtype() == torch_kInt16, "a pointer")
      call torch_tensor_from_array(t, six, torch_kCPU)
      call expect(t%get_rank() == 6, "more ranks than FTorch knows")
      deallocate (short)
   end subroutine arrays

   subroutine blobs()
      type(torch_tensor) :: t
      integer(int32), target :: x(4, 3)

      x = 1
      call torch_tensor_from_blob(t, c_loc(x), 2, [4_c_int64_t, 3_c_int64_t], [1, 2], torch_kInt32, torch_kCPU)
      call expect(all(t%get_stride() == [1, 4]), "memory in the order of Fortran")
      call t%zero()
      call expect(all(x == 0), "the tensor is the memory")
      call torch_tensor_from_blob(t, c_loc(x), 2, [4_c_int64_t, 3_c_int64_t], [2, 1], torch_kInt32, torch_kCPU)
      call expect(all(t%get_stride() == [3, 1]), "memory in the order of C")
   end subroutine blobs

   subroutine operators()
      type(torch_tensor) :: a, b, c
      real(real64), target :: x(3), y(3), z(3)

      x = [1, 2, 3]
      y = [4, 5, 6]
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_from_array(c, z, torch_kCPU)
      c = a + b
      call expect(all(z == x + y), "+")
      c = a - b
      call expect(all(z == x - y), "-")
      c = -a
      call expect(all(z == -x), "unary -")
      c = a*b/a
      call expect(all(z == y), "* and /")
      c = a**2 + a**3_int8 + a**2_int16 + a**1_int64
      call expect(all(z == 2*x**2 + x**3 + x), "integer powers of all kinds")
      c = a**0.5_real32 + a**0.5_real64
      call expect(all(abs(z - 2*sqrt(x)) < 1e-6), "real powers")
      c = (a + b)*(a - b) - (-(a*a) + b*b)
      call expect(all(z == 2*x*x - 2*y*y), "a long expression")
   end subroutine operators

   subroutine reductions()
      type(torch_tensor) :: a, total
      real(real32), target :: x(2, 2), y(1)

      x = reshape([1.0, 2.0, 3.0, 4.0], [2, 2])
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(total, y, [1], torch_kCPU)
      call torch_tensor_sum(total, a)
      call expect(y(1) == 10, "sum")
      call torch_tensor_mean(total, a*a)
      call expect(y(1) == 7.5, "mean of an expression")
   end subroutine reductions

   subroutine assignment()
      type(torch_tensor) :: a, b, c
      real(real32), target :: x(2), y(2)
      real(real64), target :: wide(2)

      x = [1, 2]
      y = 0
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      b = a
      call expect(all(y == x), "values go into the array of the left side")
      x = 5
      call expect(all(y == [1, 2]), "and are copies")
      c = a
      call a%zero()
      b = c
      call expect(all(y == 5), "a tensor without contents gets memory of its own")
      b = b + b
      call expect(all(y == 10), "both sides are the same")
      call torch_tensor_from_array(c, wide, torch_kCPU)
      c = b
      call expect(all(wide == 10), "another type on the left side")
      x = [3, 4]
      call torch_tensor_to(a, c)
      call expect(all(wide == [3, 4]), "to copies too")
   end subroutine assignment

   !> Reads a nameless tensor as often as a program likes
   subroutine use_often(x, result)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor), intent(inout) :: result

      type(torch_tensor) :: y

      y = x
      result = x*x
      result = result + x - y
   end subroutine use_often

   function squared(x) result(y)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: y

      y = x*x
   end function squared

   subroutine nameless()
      type(torch_tensor) :: a, b
      real(real32), target :: x(2), y(2)

      x = [1, 2]
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call use_often(a + a, b)
      call expect(all(y == [4, 16]), "an expression that a procedure reads several times")
      b = squared(a + a) + squared(squared(a))
      call expect(all(y == [5, 32]), "functions that return tensors")
   end subroutine nameless

   subroutine note_warning(text)
      character(*), intent(in) :: text

      print "(a)", text
      was_warned = .true.
   end subroutine note_warning

   !> The library warns when 100,000 results of operations are alive
   subroutine many_expressions()
      type(torch_tensor) :: a, b
      real(real32), target :: x(1), y(1)
      integer :: i

      x = 1
      y = 0
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      do i = 1, 30000
         b = (a + a)*a - a**2 + b
      end do
      call expect(y(1) == 30000, "values of many expressions")
      call expect(.not. was_warned, "results without a name do not stay")
   end subroutine many_expressions
end module ftorch_tensors

program test_ftorch_tensors
   use check, only : finish
   use ftn_pytorch, only : ftn_pytorch_on_warning
   use ftorch_tensors
   implicit none

   call ftn_pytorch_on_warning(note_warning)
   call makers()
   call shapes_stay()
   call arrays()
   call blobs()
   call operators()
   call reductions()
   call assignment()
   call nameless()
   call many_expressions()
   call finish()
end program test_ftorch_tensors
