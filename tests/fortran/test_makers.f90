! SPDX-License-Identifier: MIT
!> Tensors that torch makes: their values are those of torch, their shapes those of Fortran, in both layouts.
program test_makers
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: oracle

   call random_init(repeatable=.true., image_distinct=.true.)
   call oracle%load(script("expected.py"))
   call shapes()
   call kinds()
   call random_numbers()
   call values_everywhere()
   call rows()
   call likenesses()
   call refuses()
   call finish()

contains

   subroutine shapes()
      type(torch_tensor) :: t
      integer :: rank, i
      integer(int64), target :: seen

      call t%zeros([2, 3])
      call expect(all(t%shape() == [2, 3]) .and. all(t%stride() == [1, 2]), "reversed: shape and strides")
      call torch_call("Tensor.size", [t%arg(), torch_in(0)], [torch_out(seen)])
      call expect(seen == 3, "reversed: the last axis of Fortran is the first one of torch")
      call t%zeros([2_int64, 3_int64], layout="same")
      call expect(all(t%shape() == [2, 3]) .and. all(t%stride() == [3, 1]), "same: shape and strides")
      call torch_call("Tensor.size", [t%arg(), torch_in(0)], [torch_out(seen)])
      call expect(seen == 2, "same: axes are those of Fortran")
      do rank = 1, 7
         call t%ones([(i, i=1, rank)])
         call expect(all(t%shape() == [(i, i=1, rank)]) .and. t%rank() == rank, "shape of every rank")
      end do
      call t%ones([integer ::])
      call expect(t%rank() == 0 .and. size(t%shape()) == 0 .and. size(t%stride()) == 0, "rank 0")
      call t%ones([0, 3])
      call expect(all(t%shape() == [0, 3]), "zero size")
      call expect(t%device() == "cpu" .and. t%dtype() == "float32" .and. .not. t%requires_grad(), "the defaults")
   end subroutine shapes

   subroutine kinds()
      character(*), parameter :: names(12) = [character(10) :: "float32", "float64", "int8", "int16", "int32", &
         "int64", "uint8", "complex64", "complex128", "bool", "float16", "bfloat16"]
      type(torch_tensor) :: t
      character(:), allocatable :: name, errmsg
      integer :: i, stat

      do i = 1, size(names)
         call t%ones([2, 3], dtype=trim(names(i)))
         call expect(t%dtype() == trim(names(i)), "type " // names(i))
         call agrees(t, "ones", trim(names(i)), [torch_copy([3, 2])])
         call t%empty([2], dtype=trim(names(i)), device="cpu")
         call expect(t%dtype() == trim(names(i)), "empty of type " // names(i))
      end do
      call t%zeros([2], requires_grad=.true.)
      call expect(t%requires_grad(), "a maker switches gradients on")
      call t%set_requires_grad(.false.)
      call expect(.not. t%requires_grad(), "gradients can be switched off")
      call t%zeros([2], device="meta")
      name = t%device(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "a device without numbers", errmsg)
   end subroutine kinds

   subroutine random_numbers()
      type(torch_tensor) :: t

      call torch_call("manual_seed", [torch_in(7)])
      call t%rand([2, 3])
      call agrees(t, "rand", "float32", [torch_copy([3, 2])])
      call torch_call("manual_seed", [torch_in(7)])
      call t%randn([2, 3], dtype="float64")
      call agrees(t, "randn", "float64", [torch_copy([3, 2])])
   end subroutine random_numbers

   subroutine values_everywhere()
      type(torch_tensor) :: t

      call t%full([2, 3], 1.5)
      call agrees(t, "full", "float32", [torch_copy([3, 2]), torch_in(1.5)])
      call t%full([2, 3], 0.1d0, dtype="float64")
      call agrees(t, "full", "float64", [torch_copy([3, 2]), torch_in(0.1d0)])
      call t%full([2, 3], 7)
      call agrees(t, "full", "int64", [torch_copy([3, 2]), torch_in(7)])
      call t%full([2_int64], 5000000000_int64)
      call agrees(t, "full", "int64", [torch_copy([2]), torch_in(5000000000_int64)])
      call t%full([2_int64, 3_int64], 2.5d0, layout="same", requires_grad=.true.)
      call expect(all(t%shape() == [2, 3]) .and. all(t%stride() == [3, 1]) .and. t%requires_grad(), "full with options")
   end subroutine values_everywhere

   subroutine rows()
      type(torch_tensor) :: t

      call t%arange(0, 5)
      call agrees(t, "arange", "int64", [torch_in(0), torch_in(5)])
      call t%arange(2_int64, 11_int64, 3_int64, dtype="int32")
      call agrees(t, "arange", "int32", [torch_in(2), torch_in(11), torch_in(3)])
      call t%arange(0.5, 2.0, step=0.25)
      call agrees(t, "arange", "float32", [torch_in(0.5), torch_in(2.0), torch_in(0.25)])
      call t%arange(1d0, 0d0, -0.1d0, dtype="float64", requires_grad=.true.)
      call agrees(t, "arange", "float64", [torch_in(1d0), torch_in(0d0), torch_in(-0.1d0)])
      call expect(t%requires_grad(), "arange with gradients")
      call t%linspace(0.0, 1.0, 7)
      call agrees(t, "linspace", "float32", [torch_in(0.0), torch_in(1.0), torch_in(7)])
      call t%linspace(-1d0, 1d0, 4, dtype="float64")
      call agrees(t, "linspace", "float64", [torch_in(-1d0), torch_in(1d0), torch_in(4)])
      call t%eye(3)
      call agrees(t, "eye", "float32", [torch_in(3)])
      call t%eye(2, dtype="complex128")
      call agrees(t, "eye", "complex128", [torch_in(2)])
   end subroutine rows

   subroutine likenesses()
      type(torch_tensor) :: given, t
      real(real64), target :: a(2, 3)
      real(real64) :: found(2, 3)

      a = 4
      call given%from_array(torch_in(a), layout="same")
      call t%zeros_like(given)
      call t%copy_to(torch_out(found))
      call expect(all(found == 0) .and. t%dtype() == "float64" .and. all(a == 4), "zeros_like")
      call t%ones_like(given, dtype="int32", requires_grad=.false., device="cpu")
      call t%copy_to(torch_out(found))
      call expect(all(found == 1) .and. t%dtype() == "int32", "ones_like of another type")
      call t%empty_like(given, requires_grad=.true.)
      call expect(all(t%shape() == [2, 3]) .and. t%requires_grad(), "empty_like with gradients")
      call torch_call("manual_seed", [torch_in(7)])
      call t%rand_like(given)
      call torch_call("manual_seed", [torch_in(7)])
      call given%rand([2, 3], dtype="float64", layout="same")
      call expect(all(t%shape() == [2, 3]), "rand_like")
      call t%randn_like(given)
      call expect(all(t%shape() == [2, 3]) .and. t%dtype() == "float64", "randn_like")
      call t%zeros_like(t)
      call t%copy_to(torch_out(found))
      call expect(all(found == 0), "like itself")
   end subroutine likenesses

   subroutine refuses()
      type(torch_tensor) :: t, unset
      integer :: stat, i
      character(:), allocatable :: errmsg

      call t%ones([2, 3])
      call t%zeros([2, 3], dtype="flaot64", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown type", errmsg, "did you mean 'float64'?")
      call t%zeros([2, 3], dtype="float", stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "another name of a type")
      call t%ones([2, 3])
      call t%zeros([2, 3], device="gpu:1", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "unknown device", errmsg, "gpu")
      call t%zeros([2, 3], layout="fortran", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown layout", errmsg)
      call expect_text(errmsg, 'the layout must be "reversed" or "same"', "text of an unknown layout")
      call t%zeros([-2, 3], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "negative extent", errmsg, "non-negative")
      call t%zeros([2, 3], dtype="int32", requires_grad=.true., stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "Only Tensors of floating point and complex dtype can require gradients", "integers")
      call t%arange(0, 5, -1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a step in the wrong direction", errmsg)
      call t%linspace(0.0, 1.0, -1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a negative count", errmsg)
      call t%eye(-1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a negative size", errmsg)
      call t%zeros_like(unset, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "like nothing", errmsg)
      call expect(all(t%shape() == [2, 3]), "a tensor keeps its contents where a maker fails")
      call t%zeros([(1, i=1, 8)])
      i = t%rank(stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RANK, "rank 8", errmsg, "8 axes")
   end subroutine refuses

   !> Ask Python whether torch makes the same
   subroutine agrees(tensor, name, dtype, inputs)
      type(torch_tensor), intent(in) :: tensor
      character(*), intent(in) :: name, dtype
      type(torch_arg), intent(in) :: inputs(:)

      character(200) :: difference

      call oracle%call("maker", [tensor%arg(), torch_in(name), torch_in(dtype), inputs], [torch_out(difference)])
      call expect(difference == "", name // " of " // dtype // ": " // trim(difference))
   end subroutine agrees
end program test_makers
