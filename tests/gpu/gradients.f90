! SPDX-License-Identifier: MIT
!> Gradients of tensors on a GPU, before and after Python is started for what only Python does.
program gradients
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   character(8) :: first

   call require_gpus(1)
   call get_command_argument(1, first)
   if (first == "host") call train("cpu", 3)
   call train("cuda:0", 3)
   call train("cuda:0", 3)
   call finish()

contains

   !> Steps towards zero, of which those from a number on are clipped
   subroutine train(device, from)
      character(*), intent(in) :: device
      integer, intent(in) :: from

      integer, parameter :: steps = 6, n = 5
      type(torch_scope) :: scope
      type(torch_tensor) :: given, weights, loss
      type(torch_optimizer) :: optimizer
      real(real64), target :: start(n)
      real(real64) :: losses(steps)
      character(:), allocatable :: errmsg
      integer :: i, stat

      start = [1, 2, 3, 4, 5]
      call scope%begin()
      call given%from_array(start)
      weights = torch_clone(torch_to(given, device=device))
      call weights%set_requires_grad()
      call optimizer%create("SGD", [weights], [torch_in("lr", 1d-1)])
      do i = 1, steps
         call optimizer%zero_grad()
         loss = torch_sum(weights**2)
         call loss%backward(stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, "backward on "//device, errmsg)
         if (i >= from) call optimizer%clip_grad_norm(1d30)
         call optimizer%step()
         call loss%item(losses(i))
      end do
      call scope%end()
      call expect(all(abs(losses - 55*0.64d0**[(i - 1, i=1, steps)]) < 1d-9), "each step takes a fifth on "//device)
   end subroutine train

end program gradients
