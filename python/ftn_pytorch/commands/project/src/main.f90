! SPDX-License-Identifier: MIT
!> The full model runs, and a closure learns from it; then the closure makes a forecast in place of the fast variables.
!>
!> Arguments: the script and the last step. A second run with a later step goes on where the first one ended.
program project_name
   use ftn_pytorch
   use lorenz96
   implicit none
   integer, parameter :: learn_every = 10, keep_every = 5000
   type(torch_pymodule) :: model
   real(wp) :: z(slow*(1 + fast)), x(5, slow), u(1, slow)
   real :: loss
   logical :: is_completed
   character(1000) :: script, text
   integer :: begin, step, last

   if (command_argument_count() /= 2) error stop "the arguments are the script and the last step"
   call get_command_argument(1, script)
   call get_command_argument(2, text)
   read (text, *) last
   call ftn_pytorch_set_threads(1)   ! more are no faster for a network of this size
   call model%load(trim(script), dtype="float32")
   call restart(begin)
   do step = begin + 1, last
      call advance(z)
      if (mod(step, learn_every) == 0) then
         x = stencils(z)
         u(1, :) = coupling(z)
         is_completed = model%train([torch_in(x)], [torch_in(u)], loss)
      end if
      if (mod(step, keep_every) == 0 .or. step == last) call keep(step)
   end do
   call forecast(500)

contains

   !> The newest checkpoint and the state of the model beside it, or a first state
   subroutine restart(begin)
      integer, intent(out) :: begin
      character(:), allocatable :: errmsg
      integer :: stat, unit, i

      call model%restore("checkpoints", found=begin, stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_ERR_NO_CHECKPOINT) then
         begin = 0
         z = [(5 + 5*sin(1.0_wp*i), i=1, slow), (0.1_wp*sin(3.0_wp*i), i=1, slow*fast)]
      else if (stat /= FTN_PYTORCH_OK) then
         error stop errmsg
      else
         open (newunit=unit, file=state_file(begin), access="stream", form="unformatted", status="old", action="read")
         read (unit) z
         close (unit)
      end if
   end subroutine restart

   !> The checkpoint comes last: then there is a state for each.
   subroutine keep(step)
      integer, intent(in) :: step
      integer :: unit

      open (newunit=unit, file=state_file(step), access="stream", form="unformatted", status="replace", action="write")
      write (unit) z
      close (unit)
      call model%checkpoint("checkpoints", step=step)
   end subroutine keep

   function state_file(step) result(name)
      integer, intent(in) :: step
      character(:), allocatable :: name
      character(20) :: number

      write (number, "(i0)") step
      name = "state_"//trim(number)//".bin"
   end function state_file

   !> Errors of X after some steps, with the closure and without
   subroutine forecast(steps)
      integer, intent(in) :: steps
      real(wp) :: with(slow), without(slow)
      integer :: i

      with = z(:slow)
      without = z(:slow)
      do i = 1, steps
         x = stencils(with)
         call model%forward([torch_in(x)], [torch_out(u)])
         call advance(with, u(1, :))
         call advance(without, spread(0.0_wp, 1, slow))
         call advance(z)
      end do
      print "(a, f8.4, a, f8.4)", "forecast error", error(with), ", without the closure", error(without)
   end subroutine forecast

   pure function error(found)
      real(wp), intent(in) :: found(slow)
      real(wp) :: error

      error = sqrt(sum((found - z(:slow))**2)/slow)
   end function error
end program project_name
