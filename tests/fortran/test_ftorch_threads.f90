! SPDX-License-Identifier: MIT
!> The module ftorch in threads of OpenMP: what it keeps for expressions and shapes belongs to each thread.
module ftorch_threads
   use, intrinsic :: iso_c_binding, only : c_int64_t
   use, intrinsic :: iso_fortran_env, only : real32
   use ftorch
   implicit none
   public

contains

   !> Expressions, shapes and calls with numbers of one thread; how many were wrong
   recursive function wrong(model, number) result(found)
      type(torch_model), intent(in) :: model
      integer, intent(in) :: number
      integer :: found

      type(torch_tensor) :: a, b, in(1), out(1)
      real(real32), target :: x(number + 1), y(number + 1), u(5), v(5)
      integer(c_int64_t), pointer :: extents(:)
      integer :: i

      found = 0
      x = number
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_from_array(in(1), u, torch_kCPU)
      call torch_tensor_from_array(out(1), v, torch_kCPU)
      do i = 1, 300
         extents => a%get_shape()
         b = a*a + (a - a) + twice(a + a)
         if (any(y /= number**2 + 4*number) .or. any(extents /= number + 1)) found = found + 1
         u = number + i
         call torch_model_forward(model, in, out)
         if (any(v /= (number + i)*[0, 1, 2, 3, 4])) found = found + 1
      end do
   end function wrong

   recursive function twice(x) result(y)
      type(torch_tensor), intent(in) :: x
      type(torch_tensor) :: y

      y = x + x
   end function twice
end module ftorch_threads

program test_ftorch_threads
   use check, only : expect, finish
   use ftorch_threads
   use omp_lib, only : omp_get_num_threads, omp_get_thread_num
   implicit none

   type(torch_model) :: model
   integer :: found, threads

   call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
   found = 0
   threads = 0
   !$omp parallel reduction(+:found)
   !$omp single
   threads = omp_get_num_threads()
   !$omp end single
   found = found + wrong(model, omp_get_thread_num() + 1)
   !$omp end parallel
   call expect(threads == 4, "four threads")
   call expect(found == 0, "each thread has its own numbers")
   call finish()
end program test_ftorch_threads
