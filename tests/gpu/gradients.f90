! SPDX-License-Identifier: MIT
!> Gradients of tensors on a GPU, before and after Python is started for what only Python does.
program gradients
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   character(8) :: first

   call require_gpus(1)
   call get_command_argument(1, first)
   if (first == "host") call train("cpu", 3)
   call train("cuda:0", 3)
   call train("cuda:0", 3)
   if (first == "gpu") call in_half_precision()
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

   !> The loop that docs/fortran-api.md shows, with arrays of the host
   subroutine in_half_precision()
      integer, parameter :: steps = 20
      type(torch_pymodule) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: on_host(2), x, target, y, cost, scaled
      type(torch_optimizer) :: optimizer
      type(torch_loss) :: mse
      type(torch_grad_scaler) :: scaler
      real(real32), target :: given(1, 16), wanted(1, 16)
      real(real64) :: costs(steps)
      integer :: i

      given(1, :) = [(i/16.0, i=1, 16)]
      wanted = 3*given - 1
      call model%load(script("half.py"))
      call optimizer%create("Adam", model, [torch_in("lr", 1d-1)])
      call scaler%create(optimizer)
      call mse%create("MSELoss")
      call on_host(1)%from_array(given)
      call on_host(2)%from_array(wanted)
      x = torch_to(on_host(1), device="cuda")
      target = torch_to(on_host(2), device="cuda")
      do i = 1, steps
         call optimizer%zero_grad()
         call scope%begin()
         call scope%autocast("cuda", "float16")
         call model%forward([x%arg()], y)
         call expect(y%dtype() == "float16" .and. y%device() == "cuda:0", "a result in half precision, on the GPU")
         call mse%forward(y, target, cost)
         call scaler%scale(cost, scaled)
         call scaled%backward()
         call scaler%step()
         call scaler%update()
         call cost%item(costs(i))
         call scope%end()
      end do
      call expect(costs(steps) < 0.5d0*costs(1), "a network is trained in half precision")
   end subroutine in_half_precision

end program gradients
