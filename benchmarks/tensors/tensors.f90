! SPDX-License-Identifier: MIT
!> What tensors cost in Fortran: a process that measures, see ../harness/worker.py.
program bench_tensors
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use bench_protocol, only : argument, next_request, now, reply_times, say_started
   use ftn_pytorch
   implicit none

   integer, parameter :: size_of_vectors = 1000, batch = 32
   real(real32), target :: u(size_of_vectors, 3), x(16, batch), y(4, batch)
   type(torch_tensor) :: a, b, c, input, target
   type(torch_pymodule) :: model
   type(torch_optimizer) :: optimizer
   character(16) :: name
   integer :: numbers(2), i

   call model%load(argument(1, "bench_tensors <network.py>"))
   call random_number(u)
   call random_number(x)
   call random_number(y)
   call a%from_array(u(:, 1))
   call b%from_array(u(:, 2))
   call c%from_array(u(:, 3))
   call input%from_array(x)
   call target%from_array(y)
   call optimizer%create("Adam", model, [torch_in("lr", 1e-3)])
   call say_started(2)
   do while (next_request(name, numbers))
      call reply_times([(nanoseconds_of(name, numbers(2)), i=1, numbers(1))])
   end do

contains

   real(real64) function nanoseconds_of(name, calls) result(nanoseconds)
      character(*), intent(in) :: name
      integer, intent(in) :: calls

      type(torch_tensor) :: result, loss
      type(torch_scope) :: scope
      integer(int64) :: start
      integer :: i

      start = now()
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
      nanoseconds = real(now() - start, real64)/calls
   end function nanoseconds_of
end program bench_tensors
