! SPDX-License-Identifier: MIT
!> A torch_tensor refers to an array, to what a description means, or to a result, and shows its memory.
program test_tensor
   use, intrinsic :: iso_c_binding, only : c_associated, c_loc
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : address_of, expect, expect_status, finish, script, with_descriptors
   use ftn_pytorch
   implicit none

   type :: cell
      integer(int32) :: id = 0
      real(real64) :: t = 0
   end type cell

   type :: view
      real(real64), pointer :: of(:, :)
   end type view

   type, extends(torch_tensor) :: field
      integer :: level = 0
   end type field

   type(torch_pymodule) :: model

   call model%load(script("look.py"))
   call refers_to_an_array()
   if (with_descriptors()) call refers_to_component_sections()
   call refers_to_a_scalar()
   call becomes_an_argument()
   call receives_a_result()
   call shows_strided_memory()
   call associates_a_component()
   call takes_bounds_and_nothing()
   call is_extended()
   call refuses()
   call finish()

contains

   subroutine refers_to_an_array()
      type(torch_tensor) :: tensor
      real(real64), target :: x(2, 3)
      real(real64), pointer :: p(:, :)

      x = 1
      call tensor%from_array(x)
      call expect(tensor%is_set(), "a tensor of an array is set")
      call expect(c_associated(tensor%get_handle()), "a tensor of an array has an address")
      call expect(all(tensor%shape() == [2, 3]), "shape in Fortran order")
      call expect(tensor%dtype() == "float64" .and. tensor%device() == "cpu", "type and device")
      call tensor%to_array(p)
      x = 2
      call expect(associated(p, x), "the pointer is associated with the array")
      call expect(all(p == 2), "the pointer follows the array")
      p(2, 3) = 7
      call expect(x(2, 3) == 7, "the array follows the pointer")
      call expect(all(lbound(p) == 1), "lower bounds are one")
   end subroutine refers_to_an_array

   subroutine refers_to_component_sections()
      type(torch_tensor) :: tensor
      type(torch_results) :: results
      type(cell), target :: cells(3)
      real(real64), pointer :: p(:)
      real(real64) :: sum

      cells%t = 4
      call tensor%from_array(torch_in(cells%t))
      call tensor%to_array(p)
      call expect(address_of(c_loc(p(2))) == address_of(c_loc(cells(2)%t)), "component section, not copied")
      call model%call("total", [tensor%arg()], results)
      call results%scalar(1, sum)
      call expect(sum == 12, "component section arrives")
   end subroutine refers_to_component_sections

   subroutine refers_to_a_scalar()
      type(torch_tensor) :: tensor
      type(torch_results) :: results
      real(real64) :: s, sum

      s = 3
      call tensor%from_array(torch_out(s))
      call expect(size(tensor%shape()) == 0, "a scalar has no axes")
      s = 5
      call model%call("total", [tensor%arg()], results)
      call results%scalar(1, sum)
      call expect(sum == 5, "a scalar is referred to")
   end subroutine refers_to_a_scalar

   subroutine becomes_an_argument()
      type(torch_tensor) :: tensor
      type(torch_results) :: results
      real(real32), target :: x(3)
      integer(int64) :: address
      real(real64) :: sum

      x = 2
      call tensor%from_array(x)
      call model%call("look", [tensor%arg()], results)
      call results%scalar("address", address)
      call expect(address == address_of(c_loc(x)), "a tensor as argument is not copied")
      call model%call("total", [tensor%arg("x")], results)
      call results%scalar(1, sum)
      call expect(sum == 6, "a tensor as keyword argument")
   end subroutine becomes_an_argument

   subroutine receives_a_result()
      type(torch_tensor) :: output
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      real(real32), target :: x(3)
      real(real32), pointer :: p(:)
      integer(int64) :: address

      x = 2
      call list%create()
      call list%add_array(x)
      call model%forward(list, output)
      call output%to_array(p)
      call expect(all(p == 4), "a result in a tensor")
      call model%call("look", [output%arg()], results)
      call results%scalar("address", address)
      call expect(address == address_of(c_loc(p)), "a result goes back without a copy")
      call model%forward(list, output)
      call expect(output%is_set(), "a tensor receives a second result")
   end subroutine receives_a_result

   subroutine shows_strided_memory()
      type(torch_results) :: results
      real(real64) :: x(2, 3)
      real(real64), pointer :: p(:, :), empty(:)
      integer :: stat

      x = reshape([1, 2, 3, 4, 5, 6], [2, 3])
      call model%call("transposed", [torch_in(x)], results)
      call results%to_array(1, p, stat=stat)
      if (.not. with_descriptors()) then
         call expect_status(stat, FTN_PYTORCH_ERR_STRIDE, "pointer to transposed memory is refused")
      else
         call expect_status(stat, FTN_PYTORCH_OK, "pointer to transposed memory")
         call expect(all(shape(p) == [3, 2]), "pointer to transposed memory: shape")
         call expect(all(p == transpose(x)), "pointer to transposed memory: values")
      end if
      call model%call("empty", results=results)
      call results%to_array(1, empty)
      call expect(associated(empty) .and. size(empty) == 0, "a result without elements can be pointed to")
   end subroutine shows_strided_memory

   !> The descriptor of a pointer that was never associated is what the memory held, its rank too
   subroutine associates_a_component()
      type(torch_tensor) :: tensor, again
      type(torch_results) :: results
      type(view) :: shown
      real(real64), target :: x(2, 3)
      integer :: times

      x = reshape([1, 2, 3, 4, 5, 6], [2, 3])
      call tensor%from_array(x)
      call model%call("transposed", [tensor%arg()], results)
      do times = 0, 7
         shown = transfer(spread(257_int64*times, 1, 64), shown)
         call tensor%to_array(shown%of)
         call expect(associated(shown%of, x), "a component points to the memory of a tensor")
         call again%from_array(shown%of)
         call expect(all(again%shape() == [2, 3]), "and is an array like others")
         shown = transfer(spread(257_int64*times, 1, 64), shown)
         if (with_descriptors()) then
            call results%to_array(1, shown%of)
            call expect(all(shape(shown%of) == [3, 2]) .and. all(shown%of == transpose(x)), "and of a result")
         end if
      end do
   end subroutine associates_a_component

   subroutine takes_bounds_and_nothing()
      type(torch_tensor) :: tensor
      real(real64), target :: x(6, 4), none(3, 0)
      real(real64), pointer :: p(:, :), q(:, :)

      x = 1
      p(-2:, 0:) => x(2::2, 2:3)
      call tensor%from_array(p)
      call tensor%to_array(q)
      call expect(associated(q, p) .and. all(lbound(q) == 1), "a pointer with bounds of its own")
      call tensor%from_array(none)
      call expect(all(tensor%shape() == [3, 0]), "an array without elements")
   end subroutine takes_bounds_and_nothing

   !> The assignment that a type inherits is that of tensors
   subroutine is_extended()
      type(field) :: of_array, made, named
      real(real64), target :: x(2)

      x = 1
      call of_array%from_array(x)
      call made%full([2], 7d0, dtype="float64")
      made%level = 3
      of_array = made
      call expect(all(x == 7), "the array of the left side has the values")
      call expect(of_array%level == 0, "and its own component is what it was")
      named = made
      call made%free()
      call expect(named%is_set(), "another name of a type that extends torch_tensor has a reference of its own")
      call named%free()
   end subroutine is_extended

   subroutine refuses()
      type(torch_tensor) :: tensor
      real(real64) :: x(4)
      real(real64), allocatable :: a(:, :)
      real(real32), pointer :: p(:)
      real(real32), target :: before(2)
      character(:), allocatable :: errmsg
      integer :: stat

      x = 0
      call tensor%from_array(a, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_UNALLOCATED, "unallocated array")
      call tensor%from_array(x)
      p => before
      call tensor%to_array(p, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "pointer of another type", errmsg, "float64")
      call expect(associated(p, before), "the pointer keeps its target on failure")
      call model%call("total", [tensor%arg("y")], stat=stat)
      call expect(stat /= 0, "an unknown keyword")
      call expect(size(tensor%shape()) == 1, "the tensor is as before")
   end subroutine refuses
end program test_tensor
