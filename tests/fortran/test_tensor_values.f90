! SPDX-License-Identifier: MIT
!> Values of tensors go to and from Fortran: of arrays, results, views, and of what torch marks as conjugate or
!> negative.
program test_tensor_values
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int8, int16, int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, with_descriptors
   use ftn_pytorch
   implicit none

   type(torch_scope) :: scope

   call scope%begin()
   call views_share_memory("reversed")
   call views_share_memory("same")
   call copies_do_not()
   call marked_values()
   call items()
   call copies_convert()
   call values_are_overwritten()
   call scalars()
   call is_printed()
   call refuses()
   call scope%end()
   call finish()

contains

   !> Sections, permutations and reshapes of an array are the array
   subroutine views_share_memory(layout)
      character(*), intent(in) :: layout

      real(real64), target :: a(4, 3)
      real(real64), pointer :: p(:, :), flat(:)
      real(real64), target :: thin(1, 2, 3)
      real(real64) :: found(2, 3), turned(3, 4)
      type(torch_tensor) :: x, y
      integer :: i, stat

      thin = 1
      a = reshape([(real(i, real64), i=1, 12)], [4, 3])
      call x%from_array(torch_in(a), layout=layout)
      y = torch_slice(x, 1, first=2, step=2)
      call expect(all(y%shape() == [2, 3]) .and. all(y%stride() == [2, 4]), layout // ": extents of a section")
      call y%copy_to(torch_out(found))
      call expect(all(found == a(2::2, :)), layout // ": values of a section")
      if (with_descriptors()) then
         call y%to_array(p)
         call expect(associated(p, a(2::2, :)), layout // ": a pointer to a section")
      else
         call y%to_array(p, stat=stat)
         call expect_status(stat, FTN_PYTORCH_ERR_STRIDE, layout // ": a pointer to a section")
      end if
      found = -found
      call y%copy_from(torch_in(found))
      call expect(all(a(2::2, :) == found) .and. a(1, 1) == 1, layout // ": a section is written in the array")
      y = torch_permute(x, [2, 1])
      call y%copy_to(torch_out(turned))
      call expect(all(turned == transpose(a)) .and. all(y%stride() == [4, 1]), layout // ": permute")
      y = torch_reshape(x, [12])
      call y%to_array(flat)
      flat(5) = 99
      call expect(a(1, 2) == 99, layout // ": reshape is a view where it can")
      y = torch_detach(x)
      call y%to_array(p)
      call expect(associated(p, a), layout // ": detach")
      y = torch_to(x, dtype="float64", device="cpu")
      call y%to_array(p)
      call expect(associated(p, a), layout // ": to what it is")
      y = torch_contiguous(torch_permute(torch_permute(x, [2, 1]), [2, 1]))
      call y%copy_to(torch_out(a))
      call expect(a(1, 2) == 99, layout // ": contiguous")
      call x%from_array(torch_in(thin), layout=layout)
      call expect(all(x%stride() == [1, 1, 2]), layout // ": strides of an array with an axis of one element")
   end subroutine views_share_memory

   subroutine copies_do_not()
      real(real32), target :: a(2, 3)
      real(real32), pointer :: p(:, :)
      type(torch_tensor) :: x, y

      a = 1
      call x%from_array(a)
      y = torch_clone(x)
      call y%to_array(p)
      p = 2
      call expect(all(a == 1), "clone")
      y = torch_contiguous(torch_permute(x, [2, 1]))
      call y%to_array(p)
      p = 2
      call expect(all(a == 1) .and. all(shape(p) == [3, 2]), "contiguous of a permutation")
      y = torch_to(x, dtype="int16")
      call expect(y%dtype() == "int16", "to another type")
      a = 7
      call y%copy_to(torch_out(a))
      call expect(all(a == 1), "to another type copies")
      call y%from_array(torch_copy(a))
      a = 8
      call y%copy_to(torch_out(a))
      call expect(all(a == 1), "a tensor of a torch_copy has its own memory")
   end subroutine copies_do_not

   !> conj and the imaginary part of it are views that torch only marks
   subroutine marked_values()
      complex(real64), target :: z(3)
      complex(real64), pointer :: p(:)
      complex(real64) :: found(3), one
      real(real64) :: parts(3)
      real(real64), pointer :: q(:)
      type(torch_tensor) :: x, y

      z = [(1d0, 2d0), (3d0, -4d0), (0d0, 5d0)]
      call x%from_array(z)
      y = torch_conj(x)
      call expect(all(y%shape() == [3]) .and. y%dtype() == "complex128" .and. all(y%stride() == [1]), "a conjugate")
      call y%copy_to(torch_out(found))
      call expect(all(found == conjg(z)), "copy of a conjugate")
      call y%to_array(p)
      call expect(all(p == conjg(z)), "pointer to a conjugate")
      y = torch_slice(torch_conj(x), 1, 2, 2)
      call y%item(one)
      call expect(one == conjg(z(2)), "item of a conjugate")
      y = torch_conj(x) + 1d0
      call y%copy_to(torch_out(found))
      call expect(all(found == conjg(z) + 1), "expression of a conjugate")
      y = torch_imag(torch_conj(x))
      call y%copy_to(torch_out(parts))
      call expect(all(parts == -aimag(z)), "copy of what is marked negative")
      call y%to_array(q)
      call expect(all(q == -aimag(z)), "pointer to what is marked negative")
      y = torch_real(x)
      call y%copy_from(torch_in(parts))
      call expect(all(real(z) == parts), "the real part is a view")
      y = torch_conj(x)
      found = (1d0, 1d0)
      call y%copy_from(torch_in(found))
      call expect(all(z == (1d0, -1d0)), "values written into a conjugate")
   end subroutine marked_values

   !> The one value of a tensor, into every kind that holds it
   subroutine items()
      type(torch_tensor) :: x, y
      real(real32) :: r
      real(real64) :: d
      integer(int8) :: i1
      integer(int16) :: i2
      integer(int32) :: i4
      integer(int64) :: i8
      complex(real32) :: c
      complex(real64) :: z
      logical :: l
      logical(c_bool) :: b
      integer :: stat
      character(:), allocatable :: errmsg

      call x%full([1, 1], 2.5)
      call x%item(r)
      call x%item(d)
      call expect(r == 2.5 .and. d == 2.5d0, "item of real numbers")
      call x%full([1], 0.1d0, dtype="float64")
      call x%item(d)
      call expect(d == 0.1d0, "item of double precision")
      call x%full([1], 0.1, dtype="float32")
      call x%item(r)
      call expect(r == 0.1, "item of single precision")
      call x%full([1], 100)
      call x%item(i1)
      call x%item(i2)
      call x%item(i4)
      call x%item(i8)
      call expect(i1 == 100 .and. i2 == 100 .and. i4 == 100 .and. i8 == 100, "item of integers")
      call x%item(d)
      call expect(d == 100, "an integer as a real number")
      y = x > 3
      call y%item(l)
      call y%item(b)
      call expect(l .and. b, "item of truth values")
      y = x*(0.0, 1.0)
      call y%item(c)
      call y%item(z)
      call expect(c == (0.0, 100.0) .and. z == (0d0, 100d0), "item of complex numbers")

      call x%full([1], 1000)
      i1 = 5
      call x%item(i1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "an item that does not fit", errmsg)
      call expect(i1 == 5, "a variable keeps its value on failure")
      call x%full([1], 2.5)
      call x%item(i4, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a real number is no integer", errmsg)
      call x%zeros([2])
      call x%item(r, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "item of two elements", errmsg)
      call expect_text(errmsg, "a Tensor with 2 elements cannot be converted to Scalar", "text for two elements")
      call x%zeros([0])
      call x%item(r, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "item of no elements", errmsg)
   end subroutine items

   subroutine copies_convert()
      real(real64), target :: a(2, 3)
      real(real32) :: narrow(2, 3)
      real(real64) :: wide(2, 3), section(4, 3)
      integer(int64) :: whole(2, 3)
      type(torch_tensor) :: x, y
      integer :: stat
      character(:), allocatable :: errmsg

      a = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
      call x%from_array(a)
      y = x + 0d0
      call y%copy_to(torch_out(narrow), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a result is not narrowed", errmsg)
      call y%copy_to(torch_out(narrow), cast=.true.)
      call expect(all(narrow == a), "cast=.true. narrows")
      call x%copy_to(torch_out(narrow), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "an array is not narrowed", errmsg)
      call x%copy_to(torch_out(narrow), cast=.true.)
      call expect(all(narrow == a), "cast=.true. narrows an array")
      y = torch_to(x, dtype="float32")
      call y%copy_to(torch_out(wide))
      call expect(all(wide == a), "types widen")
      y = torch_to(x, dtype="int32")
      call y%copy_to(torch_out(whole))
      call expect(all(whole == a), "integers widen")
      section = 0
      call y%copy_to(torch_out(section(2::2, :)))
      call expect(all(section(2::2, :) == a) .and. all(section(1::2, :) == 0), "into a section")
      y = torch_to(x, dtype="bfloat16")
      call y%copy_to(torch_out(wide))
      call expect(all(wide == a), "half precision widens")
      call y%copy_to(torch_out(section), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a result of another shape", errmsg, "(3, 2)")
      call expect_text(errmsg, "(4, 3) in Fortran", "the shape in Fortran")
      call x%copy_to(torch_out(section), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "an array of another shape", errmsg, "(4, 3)")
   end subroutine copies_convert

   subroutine values_are_overwritten()
      real(real64), target :: a(2, 3), b(3, 2)
      integer(int32) :: whole(2, 3)
      type(torch_tensor) :: x, y
      integer :: stat
      character(:), allocatable :: errmsg

      call x%zeros([2, 3], dtype="float64", layout="same")
      a = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
      call x%copy_from(torch_in(a))
      a = 0
      call x%copy_to(torch_out(a))
      call expect(all(a == reshape([1, 2, 3, 4, 5, 6], [2, 3])), "an array")
      whole = 7
      call x%copy_from(torch_in(whole))
      call x%copy_to(torch_out(a))
      call expect(all(a == 7), "an array of another type")
      call x%copy_from(torch_in(2.5d0))
      call x%copy_to(torch_out(a))
      call expect(all(a == 2.5d0), "a number")
      call y%full([2, 3], 4.0)
      call x%copy_from(y%arg())
      call x%copy_to(torch_out(a))
      call expect(all(a == 4), "a tensor of the other layout")
      b = 0
      call x%copy_from(torch_in(b), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "another shape", errmsg, "nothing is broadcast")
      call y%copy_from(torch_in(b), stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "the tensor is float32 (3, 2), Fortran (2, 3)", "both orders of the tensor")
      call expect_text(errmsg, "the array float64 (2, 3), Fortran (3, 2)", "both orders of the array")
      call x%copy_from(torch_in("text"), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a text", errmsg)
      call x%zeros([2, 3], requires_grad=.true.)
      call x%copy_from(torch_in(1.0))
      call expect(x%requires_grad(), "values are written beside the graph")
      call x%copy_to(torch_out(a))
      call expect(all(a == 1), "values of a tensor with gradients")
      y = x*2
      call y%copy_from(torch_in(3.0))
      call expect(.not. y%requires_grad(), "a number ends the graph of the values before")
      y = x*2
      call y%copy_from(torch_in(a))
      call expect(.not. y%requires_grad(), "an array does, too")
      y = torch_slice(x, 1, last=1)
      call y%copy_from(torch_in(4.0))
      call x%copy_to(torch_out(a))
      call expect(y%requires_grad() .and. all(a(1, :) == 4) .and. all(a(2, :) == 1), "a part of a leaf")
   end subroutine values_are_overwritten

   !> A tensor of a scalar is a tensor everywhere
   subroutine scalars()
      type(torch_tensor) :: x, y
      real(real64) :: found
      logical :: yes

      call x%from_array(torch_in(4d0))
      y = torch_sqrt(x)
      call y%item(found)
      call expect(found == 2 .and. y%dtype() == "float64", "function of a scalar")
      y = -x
      call y%item(found)
      call expect(found == -4, "negative scalar")
      y = x*x
      call y%item(found)
      call expect(found == 16, "product of scalars")
      call x%from_array(torch_in(9d0))
      call x%item(found)
      call expect(found == 9, "item of a scalar")
      call expect(x%rank() == 0 .and. size(x%shape()) == 0 .and. size(x%stride()) == 0, "rank of a scalar")
      call x%from_array(torch_in(.true.))
      y = torch_logical_not(x)
      call y%item(yes)
      call expect(.not. yes, "function of a truth value")
      call x%from_array(torch_in(3))
      y = torch_clone(x)
      call expect(y%dtype() == "int32", "a scalar keeps its type")
   end subroutine scalars

   subroutine is_printed()
      type(torch_tensor) :: x
      character(60) :: lines(2)
      integer :: unit

      call x%arange(0.0, 4.0)
      x = torch_reshape(x, [2, 2])
      open (newunit=unit, status="scratch", action="readwrite")
      call x%print(unit)
      rewind (unit)
      read (unit, "(a)") lines
      close (unit)
      call expect(lines(1) == "tensor([[0., 1.]," .and. lines(2) == "        [2., 3.]])", "printed as in Python")
      call x%print()
   end subroutine is_printed

   subroutine refuses()
      type(torch_tensor) :: x, unset
      real(real32), target :: a(2, 3)
      real(real64), pointer :: d(:, :)
      real(real32), pointer :: r(:)
      real(real32) :: value
      character(:), allocatable :: text, errmsg
      integer(int64), allocatable :: extents(:)
      integer :: stat, rank
      logical :: yes

      a = 1
      call x%from_array(a)
      nullify (d, r)
      call x%to_array(d, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a pointer of another kind", errmsg)
      call x%to_array(r, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "a pointer of another rank", errmsg, "(2, 3) in Fortran order")
      call expect(.not. associated(d) .and. .not. associated(r), "pointers are kept on failure")
      call x%from_array(torch_in(a), layout="columns", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown layout", errmsg)
      call x%from_array(torch_in("text"), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_KIND, "a tensor of a text", errmsg)
      call expect(all(x%shape() == [2, 3]), "a tensor keeps its contents on failure")

      call expect(.not. unset%is_set(), "no contents")
      allocate (extents(0))  ! gfortran warns of the assignment otherwise
      extents = unset%shape(stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "shape of nothing")
      extents = unset%stride(stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "stride of nothing")
      rank = unset%rank(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "rank of nothing", errmsg)
      call expect(rank == -1 .and. size(extents) == 0, "what nothing has")
      text = unset%dtype(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "type of nothing", errmsg)
      text = unset%device(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "place of nothing", errmsg)
      call unset%copy_to(torch_out(a), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "copy of nothing", errmsg)
      call unset%copy_from(torch_in(a), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "copy into nothing", errmsg)
      call unset%to_array(d, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "pointer to nothing", errmsg)
      call unset%item(value, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "item of nothing", errmsg)
      call unset%print(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "nothing is printed", errmsg)
      yes = unset%requires_grad(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "gradients of nothing", errmsg)
      call unset%set_requires_grad(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "gradients for nothing", errmsg)
      call unset%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "backward of nothing", errmsg)
      call unset%zero_grad(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "zero_grad of nothing", errmsg)
      call x%free()
      rank = x%rank(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a tensor that was freed", errmsg)
      call x%free()
   end subroutine refuses
end program test_tensor_values
