! SPDX-License-Identifier: MIT
!> Complex arrays that begin between two multiples of their elements' size, as components after a real number may. torch
!> computes in place on others only.
program test_alignment
   use, intrinsic :: iso_c_binding, only : c_f_pointer, c_intptr_t, c_loc
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, finish
   use ftn_pytorch
   implicit none

   real(real64), target, save :: memory(12)
   real(real32), target, save :: short_memory(12)
   complex(real64), pointer :: z(:)
   complex(real32), pointer :: c(:)
   integer :: offset, i

   do offset = 1, 2
      call c_f_pointer(c_loc(memory(offset)), z, [4])
      call c_f_pointer(c_loc(short_memory(offset)), c, [4])
      do i = 1, 4 ! calls are checked twice and repeated afterwards
         call passed()
      end do
      if (mod(transfer(c_loc(z), 0_c_intptr_t), 16_c_intptr_t) == 0) then
         call tensor()
      else
         call refused_tensor()
      end if
   end do
   call finish()

contains

   subroutine passed()
      complex(real64) :: found(4)
      complex(real32) :: found_short(4)

      z = [(1, 2), (3, -4), (5, 6), (7, 8)]
      c = cmplx(z, kind=real32)
      call torch_call("conj_physical", [torch_in(z)], [torch_out(found)])
      call expect(all(found == conjg(z)), "an input")
      call torch_call("conj_physical", [torch_in(c)], [torch_out(found_short)])
      call expect(all(found_short == conjg(c)), "an input of single precision")
      call torch_call("conj_physical", [torch_in(found)], [torch_out(z)])
      call expect(all(z == conjg(found)), "an output")
      call torch_call("Tensor.conj_physical_", [torch_out(z)])
      call expect(all(z == found), "an array that is changed")
      call torch_call("Tensor.conj_physical_", [torch_out(c)])
      call expect(all(c == found_short), "an array of single precision that is changed")
   end subroutine passed

   subroutine tensor()
      type(torch_tensor) :: x, y
      complex(real64) :: found(4)

      call x%from_array(z)
      y = torch_conj(x) + 1.0_real64
      call y%copy_to(torch_out(found))
      call expect(all(found == conjg(z) + 1), "a tensor")
      call y%free()
   end subroutine tensor

   subroutine refused_tensor()
      type(torch_tensor) :: x, y
      complex(real64) :: found(4)
      integer :: stat
      character(:), allocatable :: errmsg

      call x%from_array(z)
      y = torch_conj(x)
      call y%copy_to(torch_out(found), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a tensor on such an array", errmsg, "no multiple of 16 bytes")
      call y%free()
      call x%from_array(torch_copy(z))
      y = torch_conj(x)
      call y%copy_to(torch_out(found))
      call expect(all(found == conjg(z)), "a tensor on a copy")
      call y%free()
   end subroutine refused_tensor
end program test_alignment
