! SPDX-License-Identifier: MIT
!> The calls of pytorch-fortran's polynomial example, in its order, with nothing but use torch_ftn.
program test_dropin_fit_polynomial
   use torch_ftn
   use iso_fortran_env
   use check, only : expect, finish
   implicit none

   integer, parameter :: batch_size = 256, max_batch = 5000
   real(real32), parameter :: coefficients(4) = [0.3, -1.0, 2.0, -0.5]

   type(torch_module) :: net
   type(torch_tensor) :: prediction, wanted
   type(torch_tensor_wrap) :: in_tensors
   real(real32) :: loss
   real(real32), dimension(1, batch_size) :: input, target
   real(real32), pointer :: output(:, :)
   character(:), allocatable :: in_name, out_name
   integer :: flag, batch

   call random_init(repeatable=.true., image_distinct=.true.)
   in_name = argument(1)
   out_name = argument(2)
   flag = 0
   call net%load(in_name, flag)
   call net%create_optimizer_sgd(0.1)
   call in_tensors%create
   call in_tensors%add_array(input)
   call wanted%from_array(target)

   do batch = 1, max_batch
      call random_number(input)
      target = polynomial(input)
      call net%train(in_tensors, wanted, loss)
      if (loss < 1e-4) exit
   end do
   call expect(batch < max_batch, "training reaches the loss")

   call random_number(input)
   target = polynomial(input)
   call net%forward(in_tensors, prediction)
   call prediction%to_array(output)
   call expect(all(shape(output) == [1, batch_size]), "shape of the prediction")
   call expect(sum((target - output)**2)/batch_size < 1e-3, "error of the trained model")
   call net%save(out_name)

   call net%load(out_name)
   call net%forward(in_tensors, prediction)
   call prediction%to_array(output)
   call expect(sum((target - output)**2)/batch_size < 1e-3, "error of the saved model")
   call finish()

contains

   elemental function polynomial(x) result(y)
      real(real32), intent(in) :: x
      real(real32) :: y

      y = coefficients(1) + x*(coefficients(2) + x*(coefficients(3) + x*coefficients(4)))
   end function polynomial

   function argument(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text

      integer :: arglen, stat

      call get_command_argument(number=number, length=arglen)
      allocate (character(arglen) :: text)
      call get_command_argument(number=number, value=text, status=stat)
   end function argument
end program test_dropin_fit_polynomial
