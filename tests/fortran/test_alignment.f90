! SPDX-License-Identifier: MIT
!> Complex arrays that begin between two multiples of their elements' size, as components after a real number may. torch
!> computes in place on others only, and where there are no elements it does not matter.
program test_alignment
   use, intrinsic :: iso_c_binding, only : c_f_pointer, c_intptr_t, c_loc
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, finish
   use ftn_pytorch
   implicit none

   real(real64), target, save :: memory(12), matrix(3, 2)
   real(real32), target, save :: short_memory(12)
   complex(real64), pointer :: z(:)
   complex(real32), pointer :: c(:)
   type :: mixed
      real(real32) :: number
      complex(real32) :: value
   end type mixed
   type(mixed), target, save :: parts(2, 3)
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
      call c_f_pointer(c_loc(memory(offset)), z, [0])
      call of_nothing(torch_in(z), "a complex array")
   end do
   call of_nothing(torch_in(matrix(3:1:-1, :0)), "a section that runs backwards")
   call of_nothing(torch_in(parts(:, :0)%value), "components whose distance is no multiple of their size")
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

   !> As a tensor, and as an argument
   subroutine of_nothing(array, what)
      type(torch_arg), target :: array
      character(*), intent(in) :: what

      type(torch_tensor) :: x, y
      complex(real64) :: total
      character(:), allocatable :: errmsg
      integer :: stat

      total = 7
      call x%from_array(array)
      y = torch_sum(x) + 1
      call y%copy_to(torch_out(total), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, what // " without elements, as a tensor", errmsg)
      call expect(total == 1, what // ": the sum of nothing")
      call y%free()
      total = 7
      call torch_call("sum", [array, torch_in("dtype", "complex128")], [torch_out(total)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, what // " without elements, as an argument", errmsg)
      call expect(total == 0, what // ": no sum of nothing")
   end subroutine of_nothing

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
