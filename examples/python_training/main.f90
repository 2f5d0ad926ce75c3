! SPDX-License-Identifier: MIT
!> Train the network of a Python script, and use it.
!>
!>     python_training <oscillator.py>
program python_training
   use ftn_pytorch, only : torch_in, torch_out, torch_pymodule
   implicit none

   integer, parameter :: n = 500, max_steps = 5000

   type(torch_pymodule) :: model
   real :: x(n), v(n), dv(n), exact(n), dt, loss
   logical :: done
   character(4096) :: script
   integer :: step, status

   call get_command_argument(1, script, status=status)
   if (status /= 0) error stop "usage: python_training <oscillator.py>"
   call model%load(script)

   call random_init(repeatable=.true., image_distinct=.false.)
   dt = 0.25
   done = .false.
   do step = 1, max_steps
      call draw_states()
      exact = dt*acceleration(x, v)
      ! First what the script reads, in the order of its arguments, then what it should have returned
      done = model%train([torch_in(x), torch_in(v), torch_in(dt)], [torch_in(exact)], loss)
      if (mod(step, 200) == 0) print "(a, i5, a, es9.2)", "step", step, ", loss", loss
      if (done) exit
   end do
   if (.not. done) error stop "the network did not learn in time"
   print "(a, i0, a)", "the script is content after ", step, " steps"

   ! New states, and a time step that the network has never seen
   call draw_states()
   dt = 0.1
   call model%forward([torch_in(x), torch_in(v), torch_in(dt)], [torch_out(dv)])
   exact = dt*acceleration(x, v)
   print "(a, f6.4, a, f6.4)", "typical error ", rms(dv - exact), " of ", rms(exact)
   if (rms(dv - exact) > 0.05*rms(exact)) error stop "the network is not accurate"

contains

   !> Positions and velocities from -2 to 2
   subroutine draw_states()
      call random_number(x)
      call random_number(v)
      x = 4*x - 2
      v = 4*v - 2
   end subroutine draw_states

   !> Van der Pol's oscillator: damped where x is large, driven where it is small
   elemental real function acceleration(x, v)
      real, intent(in) :: x, v

      acceleration = (1 - x**2)*v - x
   end function acceleration

   pure real function rms(values)
      real, intent(in) :: values(:)

      rms = sqrt(sum(values**2)/size(values))
   end function rms
end program python_training
