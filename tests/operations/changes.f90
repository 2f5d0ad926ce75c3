! SPDX-License-Identifier: MIT
!> Expressions that write where a tensor is, and gradients that are asked for in several steps
module changes
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   use leaves
   implicit none
   private

   public :: use_graphs, use_places

contains

   !> What is written where a tensor is, and in the array that it shows
   subroutine use_places()
      type(torch_tensor) :: tensor

      theme = "in place"
      call changed("Tensor.mul_", [p%arg(), torch_in(2d0)])
      call changed("Tensor.add_", [p%arg(), k%arg(), torch_in("alpha", 4)])
      call changed("Tensor.clamp_", [p%arg(), torch_in("min", 0.0)])
      call changed("Tensor.neg_", [p%arg()])
      call changed("Tensor.copy_", [p%arg(), k%arg()])
      call changed("Tensor.zero_", [p%arg()])
      call changed("Tensor.masked_fill_", [p%arg(), m%arg(), torch_in(7)])
      call changed("Tensor.div_", [p%arg(), torch_in((1.0, 1.0))])
      call changed("Tensor.sub_", [p%arg(), torch_copy([1d0, 2d0])])
      call changed("Tensor.pow_", [p%arg(), torch_in(3)])
      tensor = torch_slice(p, 1, step=2)
      call changed("Tensor.fill_", [tensor%arg(), torch_in(9)])
      tensor = torch_transpose(p)
      call changed("Tensor.cumsum_", [tensor%arg(), torch_copy(axis(1))])
      call assigned("k", torch_to(k, dtype="float64"))
      call assigned("-p", -p)
      call assigned("flip(p)", torch_flip(p, 2))
      call assigned("x*y", x*y)
      call assigned("x*y + p", x*y + p)
      call overwritten("copy_from of an array", p, torch_in(ay))
      call overwritten("copy_from of a number", p, torch_in(3))
      call overwritten("copy_from of the same array backwards", p, torch_in(ap(3:1:-1, :)))
      call overwritten("copy_from of the same array", p, torch_copy(ap(3:1:-1, :)))
      call overwritten("copy_from of its neighbours", torch_slice(p, 2, first=2), torch_in(ap(:, 1:4)))
      tensor = torch_slice(p, 2, last=4)
      call overwritten("copy_from of a tensor of its neighbours", torch_slice(p, 2, first=2), tensor%arg())
      call overwritten("copy_from into a slice", torch_slice(p, 2, first=2, last=3), torch_copy(ay(:, 4:5)))
      call overwritten("copy_from into a transpose", torch_transpose(p), torch_copy(transpose(ay)))
      call overwritten("copy_from of another shape", p, torch_copy(transpose(ay)))
   end subroutine use_places

   subroutine changed(name, inputs)
      character(*), intent(in) :: name
      type(torch_arg), intent(in) :: inputs(:)

      character(:), allocatable :: errmsg
      integer :: stat

      call torch_call(name, inputs, stat=stat, errmsg=errmsg)
      call both(name, stat, errmsg)
   end subroutine changed

   !> With its graph
   subroutine assigned(name, value)
      character(*), intent(in) :: name
      type(torch_tensor), intent(in) :: value

      character(:), allocatable :: errmsg

      p = value
      call both("p = " // name, FTN_PYTORCH_OK, errmsg)
   end subroutine assigned

   subroutine overwritten(name, tensor, values)
      character(*), intent(in) :: name
      type(torch_tensor), intent(in) :: tensor
      type(torch_arg), target :: values

      type(torch_tensor) :: target
      character(:), allocatable :: errmsg
      integer :: stat

      target = tensor
      call target%copy_from(values, stat=stat, errmsg=errmsg)
      call both(name, stat, errmsg)
   end subroutine overwritten

   !> The tensor, and the array that it was made of. A failure leaves them as they were
   subroutine both(name, stat, errmsg)
      character(*), intent(in) :: name
      integer, intent(in) :: stat
      character(:), allocatable, intent(in) :: errmsg

      real(real64) :: held(size(ap, 1), size(ap, 2))

      held = ap
      call of(name, p, stat, errmsg)
      call note(name // ": the array", stat, held)
   end subroutine both

   !> Gradients that are asked for otherwise
   subroutine use_graphs()
      type(torch_scope) :: inner
      type(torch_tensor) :: loss, value
      character(:), allocatable :: errmsg
      integer :: stat

      theme = "graphs"
      loss = torch_sum(x**2*y)
      call went("backward of a sum", loss)
      loss = torch_sum(x**2*y)
      call loss%backward(retain_graph=.true.)
      call went("backward twice with retain_graph", loss)
      loss = torch_sum(x**2*y)
      call loss%backward()
      call went("backward twice", loss)
      loss = torch_sum(x**3)
      call loss%backward()
      loss = torch_mean(x*s)
      call went("gradients add up", loss)
      loss = torch_sum(x**3)
      call loss%backward()
      call x%zero_grad()
      loss = torch_mean(x*s)
      call went("after zero_grad", loss)
      loss = torch_sum(x**3)
      call loss%backward()
      call x%zero_grad()
      call x%grad(value)
      call of("zero_grad", value)
      call went("backward of many elements", x*y)
      call went("backward of another shape", x*y, v)
      call went("backward with a gradient", x*y, s)
      call went("backward of what has no graph", torch_detach(x))
      call of("x*detach(x)", x*torch_detach(x))
      call inner%begin()
      call inner%no_grad()
      value = x*y
      call inner%keep(value)
      call inner%end()
      call of("no_grad", value)
      call inner%begin()
      call inner%no_grad()
      call inner%enable_grad()
      value = x*y
      call inner%keep(value)
      call inner%end()
      call of("enable_grad", value)
      call x%set_requires_grad(.false.)
      call of("a leaf that wants none any more", x*y)
      value = x*1
      call torch_call("Tensor.mul_", [value%arg(), y%arg()])
      call of("a value that is changed in place", value)
      value = torch_exp(x)
      loss = torch_sum(value)
      call torch_call("Tensor.add_", [value%arg(), torch_in(1)])
      call went("a value that is needed and changed", loss)
      value = torch_slice(x*y, 2, first=2, last=4)
      call torch_call("Tensor.mul_", [value%arg(), torch_in(3)])
      call of("a slice that is changed in place", value)
      p = x*y
      call of("p = x*y, on an array", p)
      p = x*y
      p = x*s
      call of("p = x*y, then p = x*s, on an array", p)
      p = x*y
      p = torch_detach(x)
      call of("p = x*y, then p = detach(x), on an array", p)
      p = x*y
      call p%copy_from(torch_copy(ay))
      call of("copy_from into a value with a graph", p)
      value = torch_slice(x, 1, step=2)
      call value%copy_from(torch_in(3))
      call of("copy_from into a part of a leaf", x*torch_sum(value))
      call x%copy_from(torch_copy(ay))
      call of("copy_from into a leaf", x*y)
      call torch_call("Tensor.mul_", [x%arg(), torch_in(2)], stat=stat, errmsg=errmsg)
      call refused("a leaf that is changed in place", stat, errmsg)
      value = torch_slice(x, 1, step=2)
      call torch_call("Tensor.mul_", [value%arg(), torch_in(2)], stat=stat, errmsg=errmsg)
      call refused("a part of a leaf that is changed in place", stat, errmsg)
      p = x*y
      p = p*s
      call of("p = p*s, on an array", p)
      value = torch_where(m, p*x, y)
      call of("where with a part that wants no gradient", value)
      value = x
      loss = torch_sum(value*value)
      call went("another name for a leaf", loss)
   end subroutine use_graphs

   !> Backward, and the gradient of x then
   subroutine went(name, loss, gradient)
      character(*), intent(in) :: name
      type(torch_tensor), intent(in) :: loss
      type(torch_tensor), intent(in), optional :: gradient

      type(torch_tensor) :: weights, found
      character(:), allocatable :: errmsg
      integer :: stat

      if (present(gradient)) then
         weights = torch_to(torch_detach(gradient), dtype="float64")
         call loss%backward(weights, stat=stat, errmsg=errmsg)
      else
         call loss%backward(stat=stat, errmsg=errmsg)
      end if
      if (stat == FTN_PYTORCH_OK) call x%grad(found)
      call of(name, found, stat, errmsg)
   end subroutine went
end module changes
