! SPDX-License-Identifier: MIT
!> A training loop in Fortran: batches, loss, optimizer, scheduler and validation. Only the network is in the script.
!>
!>     training_loop <network.py>
program training_loop
   use ftn_pytorch
   implicit none

   integer, parameter :: samples = 2048, unseen = 512, batch = 128, epochs = 100
   !> Noise of the measurements that are learnt from
   real, parameter :: noise = 0.05
   real, target :: x(2, samples), y(1, samples), x_unseen(2, unseen), y_unseen(1, unseen)
   type(torch_pymodule) :: model
   type(torch_optimizer) :: optimizer
   type(torch_scheduler) :: scheduler
   type(torch_loss) :: mse
   real :: training(epochs), validation(epochs), rates(epochs)
   character(4096) :: script
   integer :: epoch, order(samples)

   call get_command_argument(1, script)
   if (script == "") script = "network.py"
   call model%load(script)
   call optimizer%create("AdamW", model, [torch_in("lr", 1d-2), torch_in("weight_decay", 1d-4)])
   call scheduler%create("CosineAnnealingLR", optimizer, [torch_in("T_max", epochs)])
   call mse%create("MSELoss")

   call random_init(repeatable=.true., image_distinct=.false.)
   call draw(x, y, noise)
   call draw(x_unseen, y_unseen, 0.0)
   do epoch = 1, epochs
      rates(epoch) = real(scheduler%last_lr())
      call shuffle(order)
      call train_an_epoch(training(epoch))
      call validate(validation(epoch))
      call scheduler%step()
      if (mod(epoch, 20) == 0) print "(a, i4, 2(a, es9.2))", "epoch", epoch, ": loss", training(epoch), &
         ", of unseen points", validation(epoch)
   end do
   call write_losses()
   ! The network should come closer to the truth than the points that it has learnt from
   if (.not. validation(epochs) < noise**2) error stop "the network has not learnt the surface"

contains

   !> One step of the optimizer for each batch; the mean loss
   subroutine train_an_epoch(mean)
      real, intent(out) :: mean

      real, target :: x_batch(2, batch), y_batch(1, batch)
      type(torch_tensor) :: input, wanted, output, cost
      type(torch_scope) :: scope
      real :: loss
      integer :: first

      mean = 0
      do first = 1, samples, batch
         x_batch = x(:, order(first:first + batch - 1))
         y_batch = y(:, order(first:first + batch - 1))
         call scope%begin()
         call input%from_array(x_batch)
         call wanted%from_array(y_batch)
         call optimizer%zero_grad()
         call model%forward([input%arg()], output)
         call mse%forward(output, wanted, cost)
         call cost%backward()
         call optimizer%step()
         call cost%item(loss)
         call scope%end()
         mean = mean + loss*batch/samples
      end do
   end subroutine train_an_epoch

   !> The loss of points that are not trained with, without gradients
   subroutine validate(loss)
      real, intent(out) :: loss

      type(torch_tensor) :: input, wanted, output, cost
      type(torch_scope) :: scope

      call scope%begin()
      call scope%no_grad()
      call input%from_array(x_unseen)
      call wanted%from_array(y_unseen)
      call model%forward([input%arg()], output)
      call mse%forward(output, wanted, cost)
      call cost%item(loss)
      call scope%end()
   end subroutine validate

   !> Points of a surface, and its height there with noise of a normal distribution (of Box and Muller)
   subroutine draw(points, heights, size_of_noise)
      real, intent(out) :: points(:, :), heights(:, :)
      real, intent(in) :: size_of_noise

      real :: uniform(2, size(points, 2))

      call random_number(points)
      call random_number(uniform)
      points = 4*points - 2
      heights(1, :) = sin(2*points(1, :))*cos(points(2, :)) &
         + size_of_noise*sqrt(-2*log(1 - uniform(1, :)))*cos(8*atan(1.0)*uniform(2, :))
   end subroutine draw

   !> The numbers from 1 in a random order (of Fisher and Yates)
   subroutine shuffle(numbers)
      integer, intent(out) :: numbers(:)

      real :: r
      integer :: i, j

      numbers = [(i, i=1, size(numbers))]
      do i = size(numbers), 2, -1
         call random_number(r)
         j = 1 + int(i*r)
         numbers([i, j]) = numbers([j, i])
      end do
   end subroutine shuffle

   subroutine write_losses()
      integer :: unit, i

      open (newunit=unit, file="training_loop.csv", action="write", status="replace")
      write (unit, "(a)") "epoch,training,validation,rate"
      do i = 1, epochs
         write (unit, "(i0, 3(',', es12.5))") i, training(i), validation(i), rates(i)
      end do
      close (unit)
   end subroutine write_losses
end program training_loop
