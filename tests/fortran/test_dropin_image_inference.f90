! SPDX-License-Identifier: MIT
!> The calls of pytorch-fortran's resnet_forward, in its order, with nothing but use torch_ftn.
program test_dropin_image_inference
   use torch_ftn
   use iso_fortran_env
   use check, only : expect, finish
   implicit none

   type(torch_module) :: net
   type(torch_tensor_wrap) :: images
   type(torch_tensor) :: scores
   real(real32) :: input(224, 224, 3, 10)
   real(real32), pointer :: output(:, :)
   character(:), allocatable :: filename
   integer :: arglen, stat

   call get_command_argument(number=1, length=arglen)
   allocate (character(arglen) :: filename)
   call get_command_argument(number=1, value=filename, status=stat)

   input = 1.0
   input(:, :, 3, 10) = 3.0
   call images%create
   call images%add_array(input)
   call net%load(filename)
   call net%forward(images, scores, flags=module_use_inference_mode)
   call scores%to_array(output)

   call expect(all(shape(output) == [5, 10]), "shape of the scores")
   call expect(all(abs(output(:, 1) - [3, 6, 9, 12, 15]) < 1e-4), "scores of the first image")
   call expect(all(abs(output(:, 10) - [5, 10, 15, 20, 25]) < 1e-4), "scores of the last image")
   call finish()
end program test_dropin_image_inference
