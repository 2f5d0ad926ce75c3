! SPDX-License-Identifier: MIT
!> Optimizers and steps
module training
   use, intrinsic :: iso_fortran_env, only : real32
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: train

contains

   subroutine train()
      real(real32), target :: goal(1, rows)
      character :: number_of_step
      integer :: i

      theme = "train"
      goal = reshape([(cos(real(i)), i=1, rows)], shape(goal))
      call model%train([torch_in(x)], [torch_in(goal(:, 1:8))], loss, stat=stat, errmsg=errmsg)
      call saw("train: half a target, and no optimizer")
      call model%create_optimizer_adam(0.01d0, stat=stat, errmsg=errmsg)
      call saw("optimizer: adam")
      call model%create_optimizer_sgd(-0.01d0, stat=stat, errmsg=errmsg)
      call saw("optimizer: rate below zero")
      call model%create_optimizer_sgd(0.01d0, nesterov=.true., stat=stat, errmsg=errmsg)
      call saw("optimizer: nesterov without momentum")
      call model%call("ftn_pytorch_create_optimizer_rmsprop", [torch_in(0.01d0)], stat=stat, errmsg=errmsg)
      call saw("optimizer: none of ours")
      do i = 1, 3
         call model%train([torch_in(x)], [torch_in(goal)], loss, stat=stat, errmsg=errmsg)
         write (number_of_step, "(i0)") i
         call saw("train: step " // number_of_step)
      end do
      call model%train([torch_in(x)], [torch_in(goal), torch_in(goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: two targets")
      call model%train([torch_in(x)], [torch_in(goal(:, 1:8))], loss, stat=stat, errmsg=errmsg)
      call saw("train: half a target")
      call model%train([torch_in(x)], [torch_in(xd(1:1, :))], loss, stat=stat, errmsg=errmsg)
      call saw("train: target of real64")
      call model%train([torch_in(x)], [torch_in(1.0)], loss, stat=stat, errmsg=errmsg)
      call saw("train: a number as target")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: after training")
      call model%set("lr", 0.02d0, stat=stat, errmsg=errmsg)
      call saw("set: rate")
      call model%get("lr", first, stat=stat, errmsg=errmsg)
      call saw("get: rate")
      call model%get("nothing", first, stat=stat, errmsg=errmsg)
      call saw("get: no such number")
      call model%set("nothing", 0.5d0, stat=stat, errmsg=errmsg)
      call saw("set: no such number")
      call model%call("ftn_pytorch_set", [torch_in("lr")], stat=stat, errmsg=errmsg)
      call saw("set: no value")
      call model%call("ftn_pytorch_set", [torch_in("lr"), torch_in(x)], stat=stat, errmsg=errmsg)
      call saw("set: an array")
      call model%call("ftn_pytorch_set", [torch_in("lr"), torch_in(.true.)], stat=stat, errmsg=errmsg)
      call saw("set: a logical")
      call model%set("lr", 0.0d0, stat=stat, errmsg=errmsg)
      call saw("set: zero")
      call model%set("lr", 0.01d0, stat=stat, errmsg=errmsg)
      call saw("set: the rate of before")
      call model%train([torch_in("x", x)], [torch_in(goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: input by name")
      call model%train([torch_in("x", x)], [torch_in("target", goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: target by name")
      call model%train([torch_in(x)], [torch_in("goal", goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: target by another name")
      call model%train([torch_in("x", x)], [torch_in("goal", goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: input by name, target by another name")
      call model%train([torch_in("x", x)], [torch_in("x", goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: target by the name of the input")
      call model%train([torch_in(x)], [torch_in(goal)], loss, stat=stat, errmsg=errmsg)
      call saw("train: a last step")
   end subroutine train
end module training
