! SPDX-License-Identifier: MIT
!> Train a saved network on a polynomial, save it, load what was saved, and use it.
!>
!>     polynomial <untrained model> <file for the trained model>
program polynomial
   use, intrinsic :: iso_fortran_env, only : real32
   use torch_ftn, only : torch_module, torch_tensor, torch_tensor_wrap
   ! What torch_ftn lacks is found in ftn_pytorch; programs may use both
   use ftn_pytorch, only : ftn_pytorch_set_threads
   implicit none

   integer, parameter :: batch_size = 128, max_steps = 20000
   real(real32), parameter :: learning_rate = 0.1, wanted_loss = 1e-4

   type(torch_module) :: network, reloaded
   type(torch_tensor_wrap) :: inputs
   type(torch_tensor) :: target, output, output_of_reloaded
   ! Fortran (1, batch_size) is (batch_size, 1) in PyTorch: a batch of samples with one feature each
   real(real32), target :: x(1, batch_size), y(1, batch_size)
   real(real32), pointer :: before(:, :), after(:, :)
   real(real32) :: loss, error
   character(4096) :: model_file, trained_file
   integer :: step, status(2)

   call get_command_argument(1, model_file, status=status(1))
   call get_command_argument(2, trained_file, status=status(2))
   if (any(status /= 0)) error stop "usage: polynomial <untrained model> <file for the trained model>"

   ! A network as small as this is slower on many threads than on one
   call ftn_pytorch_set_threads(1)
   call network%load(model_file)
   call network%create_optimizer_sgd(learning_rate)

   ! The list and the tensor refer to x and y. They are made once, and every step sees what the arrays hold by then
   call inputs%create()
   call inputs%add_array(x)
   call target%from_array(y)

   call random_init(repeatable=.true., image_distinct=.false.)
   do step = 1, max_steps
      call draw_batch()
      call network%train(inputs, target, loss)
      if (mod(step, 500) == 0) print "(a, i6, a, es9.2)", "step", step, ", loss", loss
      if (loss < wanted_loss) exit
   end do
   if (step > max_steps) error stop "the network did not learn the polynomial"
   print "(a, es7.1, a, i0, a)", "loss below ", wanted_loss, " after ", step, " steps"

   call network%save(trained_file)
   call reloaded%load(trained_file)

   ! Samples that no training step has seen
   call draw_batch()
   call network%forward(inputs, output)
   call output%to_array(before)
   call reloaded%forward(inputs, output_of_reloaded)
   call output_of_reloaded%to_array(after)

   error = sqrt(sum((after - y)**2)/batch_size)
   print "(a, f6.4)", "root mean square error on new samples: ", error
   if (error > 0.02) error stop "the trained network is not accurate"
   if (any(before /= after)) error stop "the network that was saved and loaded again gives other results"
   print "(2a)", "the network is the same after it was saved and loaded: ", trim(trained_file)

contains

   !> Fill x with numbers from -1 to 1, and y with the polynomial of them
   subroutine draw_batch()
      call random_number(x)
      x = 2*x - 1
      y = 0.5 + x*(1.0 + x*(-1.0 + x*(-2.0)))
   end subroutine draw_batch
end program polynomial
