! SPDX-License-Identifier: MIT
!> Threads compute with the same tensors: each has scopes of its own, and what one ends is nothing to the others. Every
!> tenth pass does something.
module threads
   use check, only : expect, expect_status
   use ftn_pytorch
   use passes, only : five, is, pass_number, three
   implicit none
   public

contains

   function number_of(tensor) result(number)
      type(torch_tensor), intent(in) :: tensor
      integer :: number

      real :: value
      integer :: stat

      value = -1
      call tensor%item(value, stat=stat)
      number = nint(value)
   end function number_of

   subroutine sum_up(factor, total)
      integer, intent(in) :: factor
      integer, intent(out) :: total

      type(torch_scope) :: scope
      type(torch_tensor) :: c, s
      integer :: i

      call scope%begin()
      s = three*0
      do i = 1, 20
         c = three*five
         s = s + c*factor
      end do
      total = number_of(s)
      call scope%end()
   end subroutine sum_up

   subroutine scopes_of_threads()
      integer :: totals(8), i

      if (mod(pass_number, 10) /= 0) return
      totals = 0
      !$omp parallel do num_threads(4)
      do i = 1, 8
         call sum_up(i, totals(i))
      end do
      !$omp end parallel do
      call expect(all(totals == [(300*i, i=1, 8)]), "each thread has its sum")
   end subroutine scopes_of_threads

   subroutine private_tensors()
      type(torch_tensor) :: c
      type(torch_scope) :: scope
      integer :: i, total

      if (mod(pass_number, 10) /= 0) return
      total = 0
      !$omp parallel do num_threads(4) private(c, scope) reduction(+:total)
      do i = 1, 16
         call scope%begin()
         c = three*five
         c = c*i
         total = total + number_of(c)
         call scope%end()
      end do
      !$omp end parallel do
      call expect(total == 15*136, "a tensor of each thread")
   end subroutine private_tensors

   !> The scope of the thread that calls this does not reach into the other threads, and cannot be ended there
   subroutine scope_of_another_thread()
      type(torch_scope) :: scope
      type(torch_tensor) :: results(4)
      integer :: i, stats(4)

      if (mod(pass_number, 10) /= 0) return
      call scope%begin("first thread")
      !$omp parallel do num_threads(4) schedule(static, 1)
      do i = 1, 4
         results(i) = three*i
         stats(i) = FTN_PYTORCH_OK
         if (i > 1) call scope%end(stat=stats(i))
      end do
      !$omp end parallel do
      call scope%end()
      call expect(.not. results(1)%is_set(), "what the first thread made ends with its scope")
      do i = 2, 4
         call is(results(i), 3*i)
         call expect_status(stats(i), FTN_PYTORCH_ERR_ARGUMENT, "another thread cannot end a scope")
         call results(i)%free()
      end do
   end subroutine scope_of_another_thread

   !> no_grad is of one thread
   subroutine gradients_of_threads()
      type(torch_tensor) :: w, y
      type(torch_scope) :: scope
      integer :: i
      logical :: required(4)

      if (mod(pass_number, 10) /= 0) return
      call w%zeros_like(three)
      call w%set_requires_grad()
      !$omp parallel do num_threads(4) schedule(static, 1) private(y, scope)
      do i = 1, 4
         call scope%begin()
         if (mod(i, 2) == 0) call scope%no_grad()
         y = w*2
         required(i) = y%requires_grad()
         call scope%end()
      end do
      !$omp end parallel do
      call expect(all(required .eqv. [.true., .false., .true., .false.]), "each thread has its mode")
      call w%free()
   end subroutine gradients_of_threads
end module threads

program test_values_threads
   use check, only : finish
   use passes, only : run
   use threads
   implicit none

   !> Bytes per pass: each thread keeps some blocks for itself
   integer, parameter :: allocators = 64

   call run("scopes of threads", scopes_of_threads, lost=allocators)
   call run("private tensors", private_tensors, lost=allocators)
   call run("scope of another thread", scope_of_another_thread, lost=200 + allocators)
   call run("gradients of threads", gradients_of_threads, lost=allocators)
   call finish()
end program test_values_threads
