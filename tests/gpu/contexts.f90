! SPDX-License-Identifier: MIT
!> Kernels of OpenACC and calls of torch take turns on one GPU.
!>
!>     gpu_contexts program    OpenACC begins, and keeps a context of its own: right, slow, and told once
!>     gpu_contexts torch      ftn_pytorch_init(device=...) begins: OpenACC adopts torch's context
program contexts
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : count_warnings, require_gpus, warnings_with
   implicit none

   integer, parameter :: n = 1000, rounds = 30
   character(7) :: first
   type(torch_pymodule) :: on_gpu, on_arrays
   real(real64) :: x(n), y(n)

   call get_command_argument(1, first)
   call require_gpus(1)
   call count_warnings()
   if (first == "torch") call ftn_pytorch_init(device="cuda:0")
   call fill(x, n, 0)
   call expect(all(x == 1), "a region before torch starts")
   call on_gpu%load(script("device.py"), device="cuda")
   call on_arrays%load(script("device.py"))
   call take_turns(x, y, n)
   call expect(warnings_with("ftn_pytorch_init(device=") == merge(0, 1, first == "torch"), "warnings of two contexts")
   call finish()

contains

   !> A region with data of its own
   subroutine fill(x, n, round)
      integer, intent(in) :: n, round
      real(real64), intent(out) :: x(n)

      integer :: i

      !$acc parallel loop copyout(x)
      do i = 1, n
         x(i) = 1 + round
      end do
   end subroutine fill

   subroutine take_turns(x, y, n)
      integer, intent(in) :: n
      real(real64), intent(inout) :: x(n), y(n)

      real(real64) :: here(n), back(n)
      integer :: round, i

      y = 0
      !$acc enter data create(x, y)
      do round = 1, rounds
         call fill(here, n, round)
         call expect(all(here == 1 + round), "a region after a call")
         call on_gpu%forward([torch_in(here)], [torch_out(back)])
         call expect(all(back == 2*here + 1), "a call with arrays of the host")
         !$acc parallel loop present(x)
         do i = 1, n
            x(i) = i + round
         end do
         !$acc host_data use_device(x, y)
         call on_arrays%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         !$acc parallel loop present(y)
         do i = 1, n
            y(i) = y(i)/2
         end do
         !$acc update self(y)
         call expect(all(y == [(i + round + 0.5d0, i=1, n)]), "a call with arrays on the GPU, between two regions")
      end do
      !$acc exit data delete(x, y)
   end subroutine take_turns
end program contexts
