! SPDX-License-Identifier: MIT
!> What tensors cost in Fortran: reads "case calls" from standard input and answers with the seconds that these took.
program bench_tensors
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use ftn_pytorch
   implicit none

   integer, parameter :: size_of_vectors = 1000, batch = 32
   real(real32), target :: u(size_of_vectors, 3), x(16, batch), y(4, batch)
   type(torch_tensor) :: a, b, c, input, target
   type(torch_pymodule) :: model
   type(torch_optimizer) :: optimizer
   character(4096) :: script
   character(16) :: name
   integer :: calls, status

   call get_command_argument(1, script)
   call model%load(script)
   call random_number(u)
   call random_number(x)
   call random_number(y)
   call a%from_array(u(:, 1))
   call b%from_array(u(:, 2))
   call c%from_array(u(:, 3))
   call input%from_array(x)
   call target%from_array(y)
   call optimizer%create("Adam", model, [torch_in("lr", 1e-3)])
   print "(a)", "ready"
   do
      flush (6)
      read (*, *, iostat=status) name, calls
      if (status /= 0) exit
      print "(f0.9)", seconds_of(name, calls)
   end do

contains

   function seconds_of(name, calls) result(seconds)
      character(*), intent(in) :: name
      integer, intent(in) :: calls
      real(real64) :: seconds

      type(torch_tensor) :: result, loss
      type(torch_scope) :: scope
      integer(int64) :: first, last, rate
      integer :: i

      call system_clock(first, rate)
      do i = 1, calls
         call scope%begin()
         select case (name)
         case ("expression")
            result = a*b + c
         case ("function")
            result = torch_exp(a)
         case ("training")
            call model%forward([input%arg()], result)
            loss = torch_mse_loss(result, target)
            call optimizer%zero_grad()
            call loss%backward()
            call optimizer%step()
         end select
         call scope%end()
      end do
      call system_clock(last)
      seconds = real(last - first, real64)/rate
   end function seconds_of
end program bench_tensors
