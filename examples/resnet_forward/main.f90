! SPDX-License-Identifier: MIT
!> Classify images with ResNet-18, and compare the scores with those that Python got for the same images.
!>
!>     resnet_forward <model> <scores of Python>
program resnet_forward
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use torch_ftn, only : module_use_inference_mode, torch_module, torch_tensor, torch_tensor_wrap
   implicit none

   integer, parameter :: width = 224, channels = 3, images = 4, classes = 1000

   type(torch_module) :: network
   type(torch_tensor_wrap) :: inputs
   type(torch_tensor) :: output
   ! PyTorch sees (images, channels, height, width)
   real(real32), allocatable, target :: batch(:, :, :, :)
   real(real32), pointer :: scores(:, :)
   real(real32) :: scores_of_python(classes, images), difference
   character(4096) :: model_file, scores_file
   integer(int64) :: start, finish, rate
   integer :: i, j, c, n, unit, status(2)

   call get_command_argument(1, model_file, status=status(1))
   call get_command_argument(2, scores_file, status=status(2))
   if (any(status /= 0)) error stop "usage: resnet_forward <model> <scores of Python>"

   allocate (batch(width, width, channels, images))
   do concurrent (i=1:width, j=1:width, c=1:channels, n=1:images)
      batch(i, j, c, n) = mod(3*n*i + 5*j + 7*c*c, 64)/64.0
   end do

   call network%load(model_file)
   call inputs%create()
   call inputs%add_array(batch)

   ! The first calls are slower: TorchScript optimises what it runs
   do i = 1, 3
      call system_clock(start, rate)
      call network%forward(inputs, output, flags=module_use_inference_mode)
      call system_clock(finish)
      print "(a, i0, a, f7.3, a)", "call ", i, ":", real(finish - start, real64)/real(rate, real64), " s"
   end do
   ! No copy: the pointer shows the memory of the tensor
   call output%to_array(scores)
   if (any(shape(scores) /= [classes, images])) error stop "the scores are not (1000, images)"

   open (newunit=unit, file=trim(scores_file), status="old", action="read")
   read (unit, *) scores_of_python
   close (unit)

   do n = 1, images
      print "(2(a, i0), 2(a, f7.4))", "image ", n, ": class ", maxloc(scores(:, n), 1) - 1, ", score", &
         maxval(scores(:, n)), ", in Python", maxval(scores_of_python(:, n))
   end do
   difference = maxval(abs(scores - scores_of_python))/maxval(abs(scores_of_python))
   print "(a, es8.1)", "largest difference to the scores of Python, relative to the largest score:", difference
   if (difference > 1e-4) error stop "the scores differ from those of Python"
end program resnet_forward
