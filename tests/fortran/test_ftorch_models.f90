! SPDX-License-Identifier: MIT
!> Models as programs of FTorch use them: batches, several inputs and outputs, pictures, loops, modes, files.
module ftorch_models
   use, intrinsic :: iso_c_binding, only : c_associated, c_int64_t
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect, script
   use ftn_pytorch, only : torch_out
   use ftorch
   implicit none
   public

   type(torch_model), save :: kept
   type(torch_tensor), save :: kept_in(1), kept_out(1)

contains

   subroutine batches()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x1(5), y1(5), x2(2, 5), y2(2, 5), x3(2, 3, 5), y3(2, 3, 5)
      integer :: i, j

      call torch_model_load(model, "  ftorch_scaled.pt ", torch_kCPU)
      call expect(c_associated(model%p) .and. .not. model%is_training(), "a model, in evaluation mode")
      x1 = 1
      call torch_tensor_from_array(in(1), x1, torch_kCPU)
      call torch_tensor_from_array(out(1), y1, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y1 == [0, 1, 2, 3, 4]), "one item")
      x2(1, :) = 1
      x2(2, :) = 2
      call torch_tensor_from_array(in(1), x2, torch_kCPU)
      call torch_tensor_from_array(out(1), y2, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y2(1, :) == [0, 1, 2, 3, 4]) .and. all(y2(2, :) == [0, 2, 4, 6, 8]), "a batch")
      do j = 1, 3
         do i = 1, 2
            x3(i, j, :) = 10*i + j
         end do
      end do
      call torch_tensor_from_array(in(1), x3, torch_kCPU)
      call torch_tensor_from_array(out(1), y3, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y3(2, 3, :) == 23*[0, 1, 2, 3, 4]), "a batch of batches")
      call expect(all(y3(1, 2, :) == 12*[0, 1, 2, 3, 4]), "another item of it")
      call torch_delete(in)
      call torch_delete(out)
      call torch_delete(model)
      call expect(.not. c_associated(model%p), "no model after delete")
      call torch_delete(model)
   end subroutine batches

   !> The end of both variables is in here
   subroutine use_alias(model)
      type(torch_model), intent(inout) :: model

      type(torch_model) :: alias, reloaded
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x(5), y(5)

      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      alias = model
      alias = alias
      x = 1
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_forward(alias, in, out)
      call expect(all(y == [0, 1, 2, 3, 4]), "a copy is the model")
      call torch_model_forward(alias, in, out, requires_grad=.true.)
      call torch_model_load(reloaded, "ftorch_scaled.pt", torch_kCPU)
      reloaded = model
      call torch_model_forward(reloaded, in, out)
   end subroutine use_alias

   subroutine aliases()
      type(torch_model) :: model
      integer :: i

      do i = 1, 3
         call use_alias(model)
      end do
      call torch_delete(model)
      call expect(.not. c_associated(model%p), "a copy may be deleted twice")
   end subroutine aliases

   subroutine several()
      type(torch_model) :: model
      type(torch_tensor) :: in(2), out(2)
      real(real32), target :: x(4), y(4), total(4), difference(4)

      x = [1, 2, 3, 4]
      y = [0, -1, -2, -3]
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(in(2), y, torch_kCPU)
      call torch_tensor_from_array(out(1), total, torch_kCPU)
      call torch_tensor_from_array(out(2), difference, torch_kCPU)
      call torch_model_load(model, "ftorch_two.pt", torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(total == x + y) .and. all(difference == x - y), "two inputs, two outputs")
      call torch_model_forward(model, [in(1) + in(2), in(1) - in(2)], out)
      call expect(all(total == 2*x) .and. all(difference == 2*y), "expressions as inputs")
   end subroutine several

   !> Gradients are off where FTorch has them off
   subroutine gradients()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      type(torch_tensor) :: copy
      real(real32), target :: x(4), y(4), made(4)

      x = 0
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_load(model, "ftorch_asks.pt", torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y == 2), "gradients are off by default")
      call torch_model_forward(model, in, out, requires_grad=.false.)
      call expect(all(y == 2), "gradients are off")
      call torch_model_forward(model, in, out, requires_grad=.true.)
      call torch_tensor_from_array(copy, made, torch_kCPU)
      copy = out(1)
      call expect(all(made == 1), "gradients are on")
   end subroutine gradients

   !> An array in the order of Fortran, and one in the order that a file of another program has
   subroutine pictures()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(2)
      real(real32), target :: x(1, 2, 3, 4), means(1, 2), turned(4, 3, 2, 1)
      integer(int64), target :: places(1, 2)

      x = 0
      x(1, 1, 2, 3) = 12
      x(1, 2, 1, 4) = 24
      call torch_tensor_from_array(in(1), x, [1, 2, 3, 4], torch_kCPU)
      call torch_tensor_from_array(out(1), means, torch_kCPU)
      call torch_tensor_from_array(out(2), places, torch_kCPU)
      call torch_model_load(model, "ftorch_picture.pt", torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(means(1, :) == [1, 2]) .and. all(places(1, :) == [2, 3]), "rank 4")
      turned = reshape(x, [4, 3, 2, 1], order=[4, 3, 2, 1])
      x = reshape(turned, shape(x))
      call torch_tensor_from_array(in(1), x, [4, 3, 2, 1], torch_kCPU)
      means = 0
      call torch_model_forward(model, in, out)
      call expect(all(means(1, :) == [1, 2]) .and. all(places(1, :) == [2, 3]), "rank 4 in the order of C")
   end subroutine pictures

   subroutine owned_by_torch()
      type(torch_model) :: model
      type(torch_tensor) :: in(2), out(2)
      real(real32), target :: x(4), y(4)

      x = [1, 2, 3, 4]
      y = 10
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(in(2), y, torch_kCPU)
      call torch_tensor_empty(out(1), 1, [4_c_int64_t], torch_kFloat32, torch_kCPU)
      call torch_tensor_zeros(out(2), 1, [4_c_int64_t], torch_kFloat64, torch_kCPU)
      call torch_model_load(model, "ftorch_two.pt", torch_kCPU)
      call torch_model_forward(model, in, out)
      call out(1)%t%copy_to(torch_out(x))
      call out(2)%t%copy_to(torch_out(y), cast=.true.)
      call expect(all(x == [11, 12, 13, 14]) .and. all(y == [-9, -8, -7, -6]), "outputs in memory of torch")
   end subroutine owned_by_torch

   subroutine scripts()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x(2), y(2)

      x = 0
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_load(model, script("counted.py"), torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y == 1), "a script is a model")
      call torch_tensor_zeros(out(1), 1, [2_c_int64_t], torch_kFloat32, torch_kCPU)
      call torch_model_forward(model, in, out)
      call out(1)%t%copy_to(torch_out(y))
      call expect(all(y == 2), "the function runs once, whatever memory its result goes to")
   end subroutine scripts

   subroutine narrower()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x(5)
      real(real64), target :: wide(5)

      x = 1
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), wide, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(wide == [0, 1, 2, 3, 4]), "an output of a wider type")
   end subroutine narrower

   subroutine initialise()
      call torch_model_load(kept, "ftorch_scaled.pt", torch_kCPU)
   end subroutine initialise

   subroutine compute(x, y)
      real(real32), intent(in), target :: x(5)
      real(real32), intent(out), target :: y(5)

      call torch_tensor_from_array(kept_in(1), x, [1], torch_kCPU)
      call torch_tensor_from_array(kept_out(1), y, [1], torch_kCPU)
      call torch_model_forward(kept, kept_in, kept_out)
      call torch_delete(kept_in)
      call torch_delete(kept_out)
   end subroutine compute

   subroutine loops()
      type(torch_model) :: model
      real(real32) :: x(5), y(5), total(5)
      integer :: i

      call initialise()
      x = [0, 1, 2, 3, 4]
      total = 0
      do i = 1, 1000
         call compute(x, y)
         total = total + y
         x = x + 1
      end do
      call expect(all(total == [0, 1, 2, 3, 4]*(1000*[0, 1, 2, 3, 4] + 499500)), "a model that is loaded once")
      call torch_delete(kept)
      do i = 1, 20
         call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      end do
      call expect(c_associated(model%p), "a model that is loaded again and again")
   end subroutine loops

   subroutine modes()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1)
      real(real32), target :: x(1000), y(1000)

      x = 1
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_load(model, "ftorch_dropped.pt", torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y == 1), "evaluation mode")
      call torch_model_load(model, "ftorch_dropped.pt", torch_kCPU, is_training=.true.)
      call expect(torch_model_is_training(model), "training mode")
      call torch_model_forward(model, in, out)
      call expect(all(y == 0 .or. y == 2) .and. any(y == 0) .and. any(y == 2), "what training mode computes")
   end subroutine modes

   subroutine parameters()
      type(torch_model) :: model
      type(torch_tensor) :: weights(1), in(1), out(1)
      real(real32), target :: w(5, 5), x(5), y(5)

      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      call torch_model_parameters(model, weights)
      call expect(weights(1)%requires_grad() .and. all(weights(1)%get_shape() == [5, 5]), "a parameter")
      call weights(1)%t%copy_to(torch_out(w))
      call expect(w(3, 3) == 2 .and. sum(w) == 10, "its values")
      call model%print_parameters()
      x = 1
      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), y, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(all(y == [0, 1, 2, 3, 4]), "a model whose parameters were asked for")
   end subroutine parameters
end module ftorch_models

program test_ftorch_models
   use check, only : finish
   use ftorch_models
   implicit none

   character(6) :: path

   call batches()
   call aliases()
   call gradients()
   call pictures()
   call loops()
   call narrower()
   call get_command_argument(1, path)
   if (path == "direct") then ! without Python, which does not exist in this run
      call finish()
      stop
   end if
   call several()
   call owned_by_torch()
   call scripts()
   call modes()
   call parameters()
   call finish()
end program test_ftorch_models
