! SPDX-License-Identifier: MIT
!> Tensors on a GPU where there is one, and what is said where there is none.
program test_tensor_device
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish
   use ftn_pytorch
   implicit none

   logical(c_bool), target :: has_gpu
   character(:), allocatable :: errmsg
   integer :: stat

   call random_init(repeatable=.true., image_distinct=.true.)
   call torch_call("cuda.is_available", [torch_arg ::], [torch_out(has_gpu)])
   if (has_gpu) then
      call makes_and_moves()
      call computes_there()
      call gradients_there()
      call refused_there()
   else
      print "(a)", "no GPU: only failures are tested"
   end if
   call refused_everywhere()
   call finish()

contains

   subroutine makes_and_moves()
      type(torch_tensor) :: here, there, back
      real(real32), target :: u(3, 2), v(3, 2)

      call random_number(u)
      call here%from_array(u)
      there = torch_to(here, device="cuda")
      call expect(there%device() == "cuda:0", "a tensor moves to the GPU")
      call expect(all(there%shape() == [3, 2]), "its shape stays")
      call there%copy_to(torch_out(v))
      call expect(all(u == v), "copy_to brings values back")
      back = torch_to(there, device="cpu")
      call back%copy_to(torch_out(v))
      call expect(all(u == v), "torch_to brings a tensor back")
      v = 2*u
      call there%copy_from(torch_in(v))
      v = 0
      call there%copy_to(torch_out(v))
      call expect(all(v == 2*u), "copy_from writes to the GPU")
      call there%full([4], 1.5, device="cuda")
      call expect(there%device() == "cuda:0" .and. there%dtype() == "float32", "makers make tensors there")
   end subroutine makes_and_moves

   subroutine computes_there()
      type(torch_scope) :: scope
      type(torch_tensor) :: x, y, z
      real(real64), target :: u(5, 4), v(5, 4), total
      integer :: pass

      call random_number(u)
      do pass = 1, 3
         call scope%begin()
         call x%from_array(u)
         y = torch_to(x, device="cuda")
         z = 2*y**2 - y/3
         call expect(z%device() == "cuda:0", "operators stay on the GPU")
         call z%copy_to(torch_out(v))
         call expect(all(abs(v - (2*u**2 - u/3)) < 1e-14_real64), "operators compute there")
         z = torch_sum(z)
         call z%item(total)
         call expect(abs(total - sum(v)) < 1e-12_real64, "a sum comes back as a number")
         z = matmul(y, torch_transpose(y))
         call expect(all(z%shape() == [5, 5]), "a product of matrices there")
         call scope%end()
      end do
   end subroutine computes_there

   subroutine gradients_there()
      type(torch_tensor) :: x, y, gradient
      real(real64), target :: u(6), v(6)

      call random_number(u)
      call x%from_array(u)
      call x%set_requires_grad()
      y = torch_sum(torch_to(x, device="cuda")**3)
      call y%backward()
      call x%grad(gradient)
      call expect(gradient%device() == "cpu", "the gradient is where the tensor is")
      call gradient%copy_to(torch_out(v))
      call expect(all(abs(v - 3*u**2) < 1e-14_real64), "gradients come back from the GPU")
   end subroutine gradients_there

   subroutine refused_there()
      type(torch_tensor) :: here, there, sum_of
      real(real32), pointer :: p(:)
      real(real32), target :: x(3)

      call here%ones([3])
      call there%ones([3], device="cuda")
      sum_of = here + there
      call sum_of%copy_to(torch_out(x), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "tensors on two devices", errmsg, "cuda:0")
      call there%to_array(p, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "a pointer into the memory of a GPU", errmsg)
      call here%from_array(x)
      call torch_call("ones", [torch_in(3), torch_in("device", "cuda")], there)
      call here%copy_from(there%arg(), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "copy_from a tensor on the GPU", errmsg)
      call expect(all(x == 1), "copy_from a tensor on the GPU: values")
   end subroutine refused_there

   subroutine refused_everywhere()
      type(torch_tensor) :: x

      call x%zeros([2], device="cdua", stat=stat, errmsg=errmsg)
      call expect(stat /= FTN_PYTORCH_OK, "a device that is none")
      call expect_text(errmsg, "cdua", "a device that is none: its name")
      if (has_gpu) return
      call x%zeros([2], device="cuda", stat=stat, errmsg=errmsg)
      call expect(stat /= FTN_PYTORCH_OK, "a GPU that is not there")
      call expect_text(errmsg, "CUDA", "a GPU that is not there: what is missing")
   end subroutine refused_everywhere
end program test_tensor_device
