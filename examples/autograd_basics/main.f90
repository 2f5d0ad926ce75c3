! SPDX-License-Identifier: MIT
!> Gradients of expressions that are written in Fortran, and of a network in a script, beside those by hand.
!>
!>     autograd_basics <network.py>
program autograd_basics
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   implicit none

   !> Rounding errors of real64, with some room
   real(real64), parameter :: exact = 1e-13_real64

   call differentiate_a_polynomial()
   call differentiate_a_matrix_expression()
   call add_gradients_up()
   call give_a_gradient()
   call differentiate_a_network()

contains

   !> sum(x**3 - 2*x) has the gradient 3*x**2 - 2
   subroutine differentiate_a_polynomial()
      real(real64), target :: x(5), found(5)
      type(torch_tensor) :: t, y, gradient
      type(torch_scope) :: scope

      x = [-2.0_real64, -0.5_real64, 0.0_real64, 1.0_real64, 3.0_real64]
      call scope%begin()
      call t%from_array(x)
      call t%set_requires_grad()
      y = torch_sum(t**3 - 2*t)
      call y%backward()
      call t%grad(gradient)
      call gradient%copy_to(torch_out(found))
      call scope%end()
      call check("polynomial", maxval(abs(found - (3*x**2 - 2))), exact)
   end subroutine differentiate_a_polynomial

   !> sum(r**2) for r = matmul(a, x) - b has three gradients, one for each input
   subroutine differentiate_a_matrix_expression()
      real(real64), target :: a(3, 4), x(4, 2), b(3, 2), of_a(3, 4), of_x(4, 2), of_b(3, 2)
      real(real64) :: r(3, 2)
      type(torch_tensor) :: ta, tx, tb, y, gradient
      type(torch_scope) :: scope

      call random_init(repeatable=.true., image_distinct=.false.)
      call random_number(a)
      call random_number(x)
      call random_number(b)
      call scope%begin()
      call ta%from_array(a)
      call tx%from_array(x)
      call tb%from_array(b)
      call ta%set_requires_grad()
      call tx%set_requires_grad()
      call tb%set_requires_grad()
      y = torch_sum((matmul(ta, tx) - tb)**2)
      call y%backward()
      call ta%grad(gradient)
      call gradient%copy_to(torch_out(of_a))
      call tx%grad(gradient)
      call gradient%copy_to(torch_out(of_x))
      call tb%grad(gradient)
      call gradient%copy_to(torch_out(of_b))
      call scope%end()

      r = matmul(a, x) - b
      call check("matrix, of a", maxval(abs(of_a - 2*matmul(r, transpose(x)))), exact)
      call check("matrix, of x", maxval(abs(of_x - 2*matmul(transpose(a), r))), exact)
      call check("matrix, of b", maxval(abs(of_b + 2*r)), exact)
   end subroutine differentiate_a_matrix_expression

   !> Gradients add up until zero_grad. A graph is gone after backward, unless it is retained
   subroutine add_gradients_up()
      real(real64), target :: x(3), found(3)
      type(torch_tensor) :: t, y, gradient
      type(torch_scope) :: scope
      character(:), allocatable :: errmsg
      integer :: stat

      x = [1.0_real64, 2.0_real64, 3.0_real64]
      call scope%begin()
      call t%from_array(x)
      call t%set_requires_grad()
      call t%grad(gradient) ! fetched once: it shows what the latest backward left
      y = torch_sum(torch_exp(t))
      call y%backward(retain_graph=.true.)
      call y%backward()
      call gradient%copy_to(torch_out(found))
      call check("twice backward", maxval(abs(found - 2*exp(x))), 40*exact)

      call y%backward(stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) error stop "the graph should be gone"

      call t%zero_grad()
      y = torch_sum(torch_sin(t))
      call y%backward()
      call gradient%copy_to(torch_out(found))
      call check("after zero_grad", maxval(abs(found - cos(x))), exact)
      call scope%end()
   end subroutine add_gradients_up

   !> The gradient with respect to a field is what backward needs if something outside of torch comes after it
   subroutine give_a_gradient()
      real(real64), target :: x(2, 3), weights(2, 3), found(2, 3)
      type(torch_tensor) :: t, y, outer, gradient
      type(torch_scope) :: scope

      call random_number(x)
      call random_number(weights)
      call scope%begin()
      call t%from_array(x)
      call t%set_requires_grad()
      call outer%from_array(weights)
      y = torch_tanh(t)
      call y%backward(outer)
      call t%grad(gradient)
      call gradient%copy_to(torch_out(found))
      call scope%end()
      call check("external gradient", maxval(abs(found - weights*(1 - tanh(x)**2))), exact)
   end subroutine give_a_gradient

   !> d y / d x of a network that has learnt x*exp(-x**2) from its values
   subroutine differentiate_a_network()
      integer, parameter :: n = 201
      real(real64), parameter :: step = 1e-5_real64
      real(real64), target :: x(1, n), y(1, n), dy(1, n)
      real(real64), target :: higher(1, n), lower(1, n), wanted(1, n), near(1, n), loss
      type(torch_pymodule) :: model
      type(torch_tensor) :: tx, ty, ones, gradient
      type(torch_scope) :: scope
      character(4096) :: script
      integer :: i, unit

      call get_command_argument(1, script)
      if (script == "") script = "network.py"
      call model%load(script)
      x(1, :) = [(-2.5_real64 + 5*real(i - 1, real64)/(n - 1), i=1, n)]
      wanted = curve(x)
      call model%call("learn", [torch_in(x), torch_in(wanted)], [torch_out(loss)])

      call scope%begin()
      call tx%from_array(x)
      call tx%set_requires_grad()
      call model%forward([tx%arg()], ty)
      ! Each point has a response of its own, so one backward gives the derivatives at all points
      call ones%ones_like(ty)
      call ty%backward(ones)
      call tx%grad(gradient)
      call ty%copy_to(torch_out(y))
      call gradient%copy_to(torch_out(dy))
      call scope%end()

      near = x + step
      call model%forward([torch_in(near)], [torch_out(higher)])
      near = x - step
      call model%forward([torch_in(near)], [torch_out(lower)])
      call check("network, beside differences", maxval(abs(dy - (higher - lower)/(2*step))), 1e-8_real64)
      call check("network, beside the curve", maxval(abs(dy - slope(x))), 0.05_real64)

      open (newunit=unit, file="autograd_basics.csv", action="write", status="replace")
      write (unit, "(a)") "x,curve,response,slope,derivative"
      do i = 1, n
         write (unit, "(f8.4, 4(',', es13.5))") x(1, i), curve(x(1, i)), y(1, i), slope(x(1, i)), dy(1, i)
      end do
      close (unit)
   end subroutine differentiate_a_network

   elemental real(real64) function curve(x)
      real(real64), intent(in) :: x

      curve = x*exp(-x**2)
   end function curve

   elemental real(real64) function slope(x)
      real(real64), intent(in) :: x

      slope = (1 - 2*x**2)*exp(-x**2)
   end function slope

   subroutine check(name, error, limit)
      character(*), intent(in) :: name
      !> Largest difference, and what it may be
      real(real64), intent(in) :: error, limit

      character(30) :: label

      label = name
      print "(2a, es8.1)", label, " largest error ", error
      if (.not. error <= limit) error stop "a gradient is wrong"
   end subroutine check
end program autograd_basics
