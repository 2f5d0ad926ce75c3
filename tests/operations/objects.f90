! SPDX-License-Identifier: MIT
!> Optimizers that the program makes for a model, and handles that are freed, twice too
module objects
   use, intrinsic :: iso_fortran_env, only : real32
   use ftn_pytorch
   use parts, only : schedule
   use seen
   implicit none
   private

   public :: free_handles, make_optimizers

contains

   subroutine make_optimizers()
      type(torch_optimizer) :: optimizer

      theme = "objects"
      call optimizer%step(stat=stat, errmsg=errmsg)
      call saw("step: nothing created")
      call optimizer%create("NONE", model, [torch_in("lr", 0.1d0)], stat=stat, errmsg=errmsg)
      call saw("create: no such class")
      call optimizer%create("SGD", model, [torch_in("nothing", 0.1d0)], stat=stat, errmsg=errmsg)
      call saw("create: no such option")
      call optimizer%create("SGD", model, [torch_in("lr", -0.1d0)], stat=stat, errmsg=errmsg)
      call saw("create: rate below zero")
      call optimizer%create("SGD", model, [torch_in("lr", "fast")], stat=stat, errmsg=errmsg)
      call saw("create: a text as rate")
      call optimizer%create("SGD", model, [torch_in("lr", 0.1d0), torch_in("momentum", 0.5d0)], stat=stat, &
         errmsg=errmsg)
      call saw("create")
      if (stat == 0) call train_by(optimizer)
      theme = "objects"
      call optimizer%free()
      call optimizer%step(stat=stat, errmsg=errmsg)
      call saw("step: freed")
      call optimizer%free()
      call optimizer%zero_grad(stat=stat, errmsg=errmsg)
      call saw("zero_grad: freed twice")
   end subroutine make_optimizers

   subroutine train_by(optimizer)
      type(torch_optimizer), intent(in) :: optimizer

      type(torch_scope) :: scope
      type(torch_tensor) :: input, goal, output, cost
      character :: number_of_step
      integer :: i

      theme = "steps"
      do i = 1, 3
         write (number_of_step, "(i0)") i
         call scope%begin()
         call input%from_array(torch_in(x))
         call goal%from_array(torch_in(cells(1:1, :)))
         call model%forward([input%arg()], output, stat=stat, errmsg=errmsg)
         call saw("forward: with a graph, step " // number_of_step)
         cost = torch_mse_loss(output, goal)
         call optimizer%zero_grad(stat=stat, errmsg=errmsg)
         call saw("zero_grad: step " // number_of_step)
         call cost%backward(stat=stat, errmsg=errmsg)
         call saw("backward: step " // number_of_step)
         call optimizer%clip_grad_norm(0.5d0, stat=stat, errmsg=errmsg)
         call saw("clip_grad_norm: step " // number_of_step)
         call optimizer%step(stat=stat, errmsg=errmsg)
         call saw("step: step " // number_of_step)
         call scope%end()
         call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call saw_near("forward: after step " // number_of_step)
      end do
      call optimizer%get("lr", first, stat=stat, errmsg=errmsg)
      call saw("get: rate")
      call optimizer%set("lr", 0.2d0, stat=stat, errmsg=errmsg)
      call saw("set: rate")
      call optimizer%get("nothing", first, stat=stat, errmsg=errmsg)
      call saw("get: no such option")
      call optimizer%get("lr", first, group=7, stat=stat, errmsg=errmsg)
      call saw("get: no such group")
      call schedule(optimizer)
   end subroutine train_by

   subroutine free_handles()
      type(torch_tensor) :: tensor, alias
      type(torch_results) :: kept
      type(torch_tensor_wrap) :: wrap
      real(real32), pointer :: values(:, :)

      theme = "handles"
      call model%forward([tensor%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("tensor: nothing in it")
      call tensor%from_array(torch_in(x))
      alias = tensor
      call tensor%free()
      call model%forward([alias%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("tensor: freed through an alias")
      call alias%free()
      call model%forward([alias%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("tensor: freed twice")
      call model%forward([torch_in(x)], kept, stat=stat, errmsg=errmsg)
      call saw("results")
      call kept%to_array(1, values, stat=stat, errmsg=errmsg)
      if (stat == 0) y = values
      call saw("results: to_array")
      call kept%to_array(2, values, stat=stat, errmsg=errmsg)
      call saw("results: another index")
      call kept%copy_to("y", torch_out(y), stat=stat, errmsg=errmsg)
      call saw("results: a name")
      call kept%free()
      call kept%copy_to(1, torch_out(y), stat=stat, errmsg=errmsg)
      call saw("results: freed")
      call kept%free()
      call kept%copy_to(1, torch_out(y), stat=stat, errmsg=errmsg)
      call saw("results: freed twice")
      call wrap%create()
      call wrap%add_array(x)
      call wrap%free()
      call model%forward(wrap, tensor, stat=stat, errmsg=errmsg)
      call saw("wrap: freed")
      call wrap%free()
   end subroutine free_handles
end module objects
