! SPDX-License-Identifier: MIT
!> A description that is kept means the memory that it saw, whatever becomes of the variable.
program test_kept_descriptors
   use, intrinsic :: iso_fortran_env, only : int32, real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("look.py"))
   call follows_values()
   call means_old_memory_after_move_alloc()
   call means_old_memory_after_pointer_swap()
   call keeps_scalars_and_refers_to_outputs()
   call copies_for_one_call()
   call reuses_one_description_for_many_calls()
   call finish()

contains

   function total(x) result(sum)
      type(torch_arg), target :: x
      real(real64) :: sum

      type(torch_results) :: results

      call model%call("total", [x], results)
      call results%scalar(1, sum)
   end function total

   subroutine follows_values()
      real(real64) :: x(3)
      type(torch_arg) :: kept

      x = 1
      kept = torch_in(x)
      x = 5
      call expect(total(kept) == 15, "a kept description follows the values of its array")
   end subroutine follows_values

   subroutine means_old_memory_after_move_alloc()
      real(real64), allocatable :: x(:), y(:)
      type(torch_arg) :: kept

      allocate (x(3), source=1.0_real64)
      kept = torch_in(x)
      call move_alloc(x, y)
      allocate (x(3), source=100.0_real64)
      y = 2
      call expect(total(kept) == 6, "after move_alloc the description means the memory that moved")
      call expect(total(torch_in(x)) == 300, "describing again after move_alloc means the new memory")
   end subroutine means_old_memory_after_move_alloc

   subroutine means_old_memory_after_pointer_swap()
      real(real64), target :: now(3), next(3)
      real(real64), pointer :: p(:), q(:), spare(:)
      type(torch_arg) :: kept

      now = 1
      next = 2
      p => now
      q => next
      kept = torch_in(p)
      spare => p
      p => q
      q => spare
      call expect(total(kept) == 3, "after a pointer swap the description means the old target")
      call expect(total(torch_in(p)) == 6, "describing again after a pointer swap means the new target")
   end subroutine means_old_memory_after_pointer_swap

   subroutine keeps_scalars_and_refers_to_outputs()
      type(torch_results) :: results
      type(torch_arg) :: kept
      integer(int32) :: n
      character(3) :: text
      character(:), allocatable :: answer
      real(real64) :: loss

      n = 1
      kept = torch_in(n)
      n = 2
      call model%call("value", [kept], results)
      call results%scalar(1, n)
      call expect(n == 1, "a kept scalar keeps its value")

      text = "abc"
      kept = torch_in(text)
      text = "xyz"
      call model%call("value", [kept], results)
      call results%scalar(1, answer)
      call expect(answer == "abc", "a kept text keeps its value")

      kept = torch_out(loss)
      loss = 0
      call model%call("value", [torch_in(4.5_real64)], [kept])
      call expect(loss == 4.5_real64, "a scalar output is referred to")
   end subroutine keeps_scalars_and_refers_to_outputs

   subroutine copies_for_one_call()
      type(torch_results) :: results
      type(torch_arg) :: kept(1)
      real(real64) :: x(3), sum
      integer :: stat

      x = 1
      kept(1) = torch_copy(2*x)
      x = 100
      call model%call("total", kept, results)
      call results%scalar(1, sum)
      call expect(sum == 6, "torch_copy copies when it is called")
      call model%call("total", kept, results, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "torch_copy of an array lives for one call")
   end subroutine copies_for_one_call

   subroutine reuses_one_description_for_many_calls()
      real(real64) :: x(4), y(4)
      type(torch_arg) :: inputs(1), outputs(1)
      integer :: step

      inputs = [torch_in(x)]
      outputs = [torch_out(y)]
      do step = 1, 50
         x = step
         call model%forward(inputs, outputs)
         if (any(y /= 2*step)) exit
      end do
      call expect(step == 51, "one description serves many calls")
   end subroutine reuses_one_description_for_many_calls
end program test_kept_descriptors
