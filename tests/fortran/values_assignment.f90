! SPDX-License-Identifier: MIT
!> What assignment means: into a tensor made of an array the values are written, any other one becomes another name.
module assignment
   use, intrinsic :: iso_fortran_env, only : compiler_version, real32, real64
   use check, only : expect
   use ftn_pytorch
   use passes, only : are, five, is, is_none, make, run, three
   implicit none
   public

   type :: tree
      integer :: number = 0
      type(torch_tensor) :: leaves(2)
   end type tree

contains

   subroutine add_to(tensor, x)
      type(torch_tensor), intent(inout) :: tensor
      type(torch_tensor), intent(in) :: x

      tensor = tensor + x
   end subroutine add_to

   subroutine write_through()
      type(torch_tensor) :: q
      real(real64), target :: array(1)

      array = 0
      call q%from_array(array)
      q = three*five
      call expect(array(1) == 15, "a result goes into the array")
      q = q + 1
      call expect(array(1) == 16, "a result of the tensor itself")
      q = three
      call expect(array(1) == 3, "the value of another tensor")
      call add_to(q, five)
      call expect(array(1) == 8, "in a procedure")
      call is(three, 3)
      array = 1
      call is(q, 1)
   end subroutine write_through

   subroutine write_through_with_shapes()
      type(torch_tensor) :: q, r
      real(real32), target :: array(2, 3), other(3, 2)

      array = reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
      other = 0
      call q%from_array(array)
      call r%from_array(other)
      r = torch_transpose(q)*2
      call expect(all(other == 2*transpose(array)), "transposed values arrive")
      q = torch_flip(q, 2)
      call expect(all(array(1, :) == [5.0, 3.0, 1.0]), "values change their places")
   end subroutine write_through_with_shapes

   subroutine write_through_overlapping()
      type(torch_tensor) :: q, tail
      real(real64), target :: array(5)

      array = [1, 2, 3, 4, 5]
      call q%from_array(array(:4))
      call tail%from_array(array(2:))
      tail = q
      call expect(all(array == [1, 1, 2, 3, 4]), "values move within an array")
   end subroutine write_through_overlapping

   subroutine write_through_component()
      type(tree) :: oak
      real(real64), target :: array(1)

      array = 0
      call oak%leaves(2)%from_array(array)
      oak%leaves(2) = three*five
      call expect(array(1) == 15, "into an array behind a component")
      oak%leaves(1) = oak%leaves(2)
      oak%leaves(1) = oak%leaves(1) + 1
      call expect(array(1) == 15, "another name is not bound to the array")
      oak%leaves = [three, five]
      call expect(array(1) == 5, "by assignment of an array of tensors")
      call is(oak%leaves(1), 3)
   end subroutine write_through_component

   subroutine other_name_of_an_array()
      type(torch_tensor) :: q, other
      real(real64), target :: array(1)

      array = 7
      call q%from_array(array)
      other = q
      array = 8
      call is(other, 8)
      other = three*five
      call expect(array(1) == 8, "the other name gets another tensor")
      other = q
      call q%free()
      call is(other, 8)
   end subroutine other_name_of_an_array

   subroutine other_names()
      type(torch_tensor) :: c

      c = three
      c = c*2
      call is(three, 3)
      c = five
      call is(c*2, 10)
      call is(five, 5)
   end subroutine other_names

   subroutine itself()
      type(torch_tensor) :: c

      call make(c, 4)
      c = c
      c = (c)
      call is(c, 4)
      c = (c + 0)
      call is(c, 4)
      call c%free()
   end subroutine itself

   subroutine free_of_one_name()
      type(torch_tensor) :: c, d, e

      c = three
      call c%free()
      call is(three, 3)
      call make(d, 4)
      e = d
      call d%free()
      call is(e*e, 16)
      call is(e, 4)
   end subroutine free_of_one_name

   subroutine free_twice()
      type(torch_tensor) :: a, c

      call make(a, 2)
      c = a*five
      call c%free()
      call c%free()
      call a%free()
      call is_none(a, FTN_PYTORCH_ERR_NOT_LOADED)
      c = five*2
      call is(c, 10)
   end subroutine free_twice

   subroutine stale_copy()
      type(tree) :: oak, elm

      call make(oak%leaves(1), 2)
      elm = oak
      call oak%leaves(1)%free()
      if (index(compiler_version(), "GCC") > 0) then
         call is_none(elm%leaves(1), FTN_PYTORCH_ERR_FREED)
         call is_none(elm%leaves(1) + 1, FTN_PYTORCH_ERR_FREED)
      else ! the tensors were assigned one by one
         call is(elm%leaves(1), 2)
      end if
   end subroutine stale_copy

   subroutine never_set()
      type(torch_tensor) :: a, c

      c = a*2
      call is_none(c, FTN_PYTORCH_ERR_NOT_LOADED)
      c = a
      call is_none(c, FTN_PYTORCH_ERR_NOT_LOADED)
      c = five
      call is(c, 5)
   end subroutine never_set

   subroutine values_in_assignment()
      call run("write through", write_through)
      call run("write through with shapes", write_through_with_shapes)
      call run("write through, overlapping", write_through_overlapping)
      call run("write through a component", write_through_component)
      call run("other name of an array", other_name_of_an_array)
      call run("other names", other_names)
      call run("itself", itself)
      call run("free of one name", free_of_one_name)
      call run("free twice", free_twice)
      call run("stale copy", stale_copy)
      call run("never set", never_set)
   end subroutine values_in_assignment
end module assignment
