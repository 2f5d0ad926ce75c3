! SPDX-License-Identifier: MIT
!> Gradients, losses, optimizers and training as programs of FTorch use them.
module ftorch_training
   use, intrinsic :: iso_c_binding, only : c_associated, c_int64_t
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect
   use ftn_pytorch, only : torch_in, torch_out
   use ftorch
   use ftorch_test_utils, only : allclose, assert_allclose, isclose
   use ftorch_types, only : torch_kMean, torch_kNone, torch_kSum
   implicit none
   public

contains

   subroutine expressions()
      type(torch_tensor) :: a, b, q, gradient, da, db
      real(real64), target :: x(2), y(2), z(2), dx(2), dy(2)

      x = [2, 3]
      y = [6, 4]
      call torch_tensor_from_array(a, x, torch_kCPU, requires_grad=.true.)
      call torch_tensor_from_array(b, y, torch_kCPU, requires_grad=.true.)
      call torch_tensor_from_array(q, z, torch_kCPU)
      call torch_tensor_from_array(da, dx, torch_kCPU)
      call torch_tensor_from_array(db, dy, torch_kCPU)
      q = a**3 - b*b/a
      call expect(q%requires_grad() .and. all(abs(z - (x**3 - y**2/x)) < 1e-12), "values, with a graph")
      call torch_tensor_ones(gradient, 1, q%get_shape(), q%get_dtype(), torch_kCPU)
      call torch_tensor_backward(q, gradient, retain_graph=.true.)
      call torch_tensor_get_gradient(da, a)
      call torch_tensor_get_gradient(db, b)
      call expect(all(abs(dx - (3*x**2 + y**2/x**2)) < 1e-12), "gradient of the first")
      call expect(all(abs(dy + 2*y/x) < 1e-12), "gradient of the second")
      call torch_tensor_backward(q, gradient)
      call torch_tensor_get_gradient(db, b)
      call expect(all(abs(dy + 4*y/x) < 1e-12), "gradients add up")
      call b%zero_grad()
      call torch_tensor_get_gradient(db, b)
      call expect(all(dy == 0), "until they are zero")
      q = a*a
      call torch_tensor_backward(q, gradient)
      call torch_tensor_get_gradient(da, a)
      call expect(all(abs(dx - (2*(3*x**2 + y**2/x**2) + 2*x)) < 1e-12), "an array that has got another graph")
      q = gradient
      call expect(.not. q%requires_grad(), "an array whose graph is gone")
   end subroutine expressions

   subroutine scalars()
      type(torch_tensor) :: a, total, da
      real(real32), target :: x(3), y(1), dx(3)

      x = [1, 2, 3]
      call torch_tensor_from_array(a, x, torch_kCPU, requires_grad=.true.)
      call torch_tensor_from_array(total, y, torch_kCPU)
      call torch_tensor_from_array(da, dx, torch_kCPU)
      call torch_tensor_sum(total, a*a)
      call torch_tensor_backward(total)
      call torch_tensor_get_gradient(da, a)
      call expect(y(1) == 14 .and. all(dx == 2*x), "gradient of a sum of an expression")
   end subroutine scalars

   subroutine through_a_model()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1), weights(1), seed, copied, dx, dw
      real(real32), target :: x(5), y(5), gx(5), gw(5, 5)
      integer :: i

      x = [1, 2, 3, 4, 5]
      call torch_tensor_from_array(in(1), x, torch_kCPU, requires_grad=.true.)
      call torch_tensor_empty(out(1), 1, in(1)%get_shape(), in(1)%get_dtype(), torch_kCPU)
      call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
      call torch_model_forward(model, in, out, requires_grad=.true.)
      call torch_tensor_from_array(copied, y, torch_kCPU)
      call torch_tensor_to(out(1), copied)
      call expect(all(y == x*[0, 1, 2, 3, 4]), "the result")
      call torch_tensor_ones(seed, 1, out(1)%get_shape(), out(1)%get_dtype(), torch_kCPU)
      call torch_tensor_backward(out(1), seed)
      call torch_tensor_from_array(dx, gx, torch_kCPU)
      call torch_tensor_get_gradient(dx, in(1))
      call expect(all(gx == [0, 1, 2, 3, 4]), "gradient of the input")
      call torch_model_parameters(model, weights)
      call torch_tensor_from_array(dw, gw, torch_kCPU)
      call torch_tensor_get_gradient(dw, weights(1))
      call expect(all([(all(gw(i, :) == x), i = 1, 5)]), "gradient of the weights, in Fortran's order of axes")
   end subroutine through_a_model

   subroutine losses()
      type(torch_tensor) :: a, b, loss, each
      real(real64), target :: x(2, 2), y(2, 2), z(1), zz(2, 2), scores(1, 3), cross(1)
      integer(int64), target :: class(1)

      x = reshape([1, 2, 3, 4], [2, 2])
      y = 1
      call torch_tensor_from_array(a, x, torch_kCPU)
      call torch_tensor_from_array(b, y, torch_kCPU)
      call torch_tensor_from_array(loss, z, torch_kCPU)
      call torch_loss_mse(loss, a, b)
      call expect(z(1) == 3.5, "mean of squares")
      call torch_loss_mse(loss, a, b, reduction_type=torch_kSum)
      call expect(z(1) == 14, "their sum")
      call torch_tensor_from_array(each, zz, torch_kCPU)
      call torch_loss_mse(each, a, b, torch_kNone)
      call expect(all(zz == (x - y)**2), "each of them")
      scores = reshape([1, 2, 3], [1, 3])
      class = 2
      call torch_tensor_from_array(a, scores, torch_kCPU)
      call torch_tensor_from_array(b, class, torch_kCPU)
      call torch_tensor_from_array(loss, cross, torch_kCPU)
      call torch_loss_cross_entropy(loss, a, b, torch_kMean)
      call expect(isclose(cross(1), log(sum(exp(scores(1, :)))) - scores(1, 3), "cross entropy"), "cross entropy")
   end subroutine losses

   !> Each optimizer for a few steps, against the same computed here
   subroutine optimizers()
      type(torch_tensor) :: scaling, input, wanted, output, loss
      type(torch_optim) :: optimizer
      real(real32), target :: s(4), x(4), y(4), z(4), l(1)
      real(real32) :: expected(4), velocity(4)
      integer :: i

      x = 1
      y = [1, 2, 3, 4]
      s = 1
      call torch_tensor_from_array(input, x, torch_kCPU)
      call torch_tensor_from_array(wanted, y, torch_kCPU)
      call torch_tensor_from_array(output, z, torch_kCPU)
      call torch_tensor_from_array(loss, l, torch_kCPU)
      call torch_tensor_from_array(scaling, s, torch_kCPU, requires_grad=.true.)
      call torch_optim_SGD(optimizer, [scaling], learning_rate=0.5d0, momentum=0.5d0)
      call expect(c_associated(optimizer%p), "an optimizer")
      expected = 1
      velocity = 0
      do i = 1, 20
         call optimizer%zero_grad()
         output = input*scaling
         call torch_loss_mse(loss, output, wanted)
         call torch_tensor_backward(loss)
         call optimizer%step()
         velocity = 0.5*velocity + (expected - y)/2
         expected = expected - 0.5*velocity
      end do
      call expect(all(abs(s - expected) < 1e-5) .and. l(1) < 0.1, "gradient descent with momentum changes the array")
      s = 0
      call torch_optim_Adam(optimizer, [scaling], learning_rate=0.25d0)
      call one_step()
      call expect(all(abs(s - 0.25) < 1e-6), "the first step of Adam is as long as its rate")
      s = 1
      call torch_optim_AdamW(optimizer, [scaling], learning_rate=0.25d0, weight_decay=0.5d0, amsgrad=.true.)
      call one_step()
      call expect(all(abs(s - [0.875, 1.125, 1.125, 1.125]) < 1e-6), "that of AdamW follows the decay")
      call torch_delete(optimizer)
      call expect(.not. c_associated(optimizer%p), "no optimizer after delete")

   contains

      subroutine one_step()
         call torch_optim_zero_grad(optimizer)
         output = input*scaling
         call torch_loss_mse(loss, output, wanted)
         call torch_tensor_backward(loss)
         call torch_optim_step(optimizer)
      end subroutine one_step
   end subroutine optimizers

   subroutine a_model_learns()
      type(torch_model) :: model
      type(torch_tensor) :: in(1), out(1), wanted(1), weights(1), loss
      type(torch_optim) :: optimizer
      real(real32), target :: x(5), y(5), z(5), l(1)
      integer :: i

      call torch_tensor_from_array(in(1), x, torch_kCPU)
      call torch_tensor_from_array(out(1), z, torch_kCPU)
      call torch_tensor_from_array(wanted(1), y, torch_kCPU)
      call torch_model_load(model, "ftorch_permuted.pt", torch_kCPU, is_training=.true.)
      call torch_model_parameters(model, weights)
      call torch_optim_SGD(optimizer, weights, learning_rate=0.5d0)
      do i = 1, 1000
         call optimizer%zero_grad()
         x = 0
         x(mod(i, 5) + 1) = 1
         y = cshift(x, 1)
         call torch_model_forward(model, in, out, requires_grad=.true.)
         call torch_tensor_from_array(loss, l, torch_kCPU)
         call torch_tensor_mean(loss, (out(1) - wanted(1))**2)
         call torch_tensor_backward(loss)
         call optimizer%step()
      end do
      call expect(l(1) < 1e-6, "the loss goes down")
      call torch_model_save(model, "ftorch_learnt.pt")
      call torch_delete(model)
      call torch_model_load(model, "ftorch_learnt.pt", torch_kCPU)
      x = [1, 2, 3, 4, 5]
      call torch_tensor_from_array(out(1), z, torch_kCPU)
      call torch_model_forward(model, in, out)
      call expect(allclose(z, cshift(x, 1), "learnt", rtol=1e-2), "the saved model has learnt it")
   end subroutine a_model_learns

   subroutine comparisons()
      real(real64) :: one(2), two(2), table(1, 2)

      one = [1, 100]
      two = [1.0d0, 100.0005d0]
      table = 1
      call expect(allclose(one, two, "close"), "within the tolerance")
      call expect(.not. allclose(one, two, "far", rtol=1d-6, print_result=.false.), "outside of it")
      call expect(.not. allclose(one, one(:1), "shapes", print_result=.false.), "another shape")
      call expect(assert_allclose(table, table, "old name"), "an old name")
      call expect(.not. isclose(1.0, 2.0, "numbers", print_result=.false.), "numbers")
   end subroutine comparisons
end module ftorch_training

program test_ftorch_training
   use check, only : finish
   use ftorch_training
   implicit none

   call expressions()
   call scalars()
   call through_a_model()
   call losses()
   call optimizers()
   call a_model_learns()
   call comparisons()
   call finish()
end program test_ftorch_training
