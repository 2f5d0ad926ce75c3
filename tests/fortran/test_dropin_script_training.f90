! SPDX-License-Identifier: MIT
!> The calls of pytorch-fortran's python_training, in its order, with nothing but use torch_ftn.
program test_dropin_script_training
   use torch_ftn
   use iso_fortran_env
   use check, only : expect, finish, script
   implicit none

   type(torch_pymodule) :: model
   type(torch_tensor_wrap) :: in_tensors
   type(torch_tensor) :: result, wanted
   real(real32) :: input(224, 224, 3, 10), target(224)
   real(real32), pointer :: output(:, :)
   real(real32) :: loss
   logical :: is_completed
   character(:), allocatable :: filename
   integer :: step

   filename = script("train.py")
   input = 1.0
   input(:, :, 2, :) = 2.5
   target = 6.0
   call in_tensors%create
   call in_tensors%add_array(input)
   call in_tensors%add_scalar(2.0)
   call wanted%from_array(target)

   call model%load(filename)
   call model%forward(in_tensors, result)
   call result%to_array(output)
   call expect(all(shape(output) == [3, 10]), "shape of the result")
   call expect(all(abs(output(:, 7) - [2.0, 5.0, 2.0]) < 1e-5), "values of the result")

   is_completed = model%train(in_tensors, wanted, loss)
   call expect(.not. is_completed, "training is not complete after one step")
   call expect(abs(loss - 9.0) < 1e-5, "loss of the first step")
   do step = 1, 100
      is_completed = model%train(in_tensors, wanted, loss)
      if (is_completed) exit
   end do
   call expect(is_completed .and. loss < 1e-3, "the script says when training is complete")
   call model%forward(in_tensors, result)
   call result%to_array(output)
   call expect(all(abs(output(:, 1) - [4.0, 10.0, 4.0]) < 0.2), "result of the trained script")
   call finish()
end program test_dropin_script_training
