! SPDX-License-Identifier: MIT
!> Models that return their input, or a view of it, whose memory goes with the call: what they return stays right, and
!> what they do to it is nobody's business. The argument is the backend; both give the same.
program test_owners
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish
   use ftn_pytorch
   implicit none

   character(*), parameter :: names(*) = [character(8) :: "passing", "turned", "sliced", "pair"]
   character(*), parameter :: owners(*) = [character(8) :: "copy", "memory", "torch"]
   character(:), allocatable :: backend
   character(16) :: argument
   integer :: i, j

   call get_command_argument(1, argument)
   backend = trim(argument)
   do i = 1, size(names)
      do j = 1, size(owners)
         call passes(trim(names(i)), trim(owners(j)), 4, 3)
         call passes(trim(names(i)), trim(owners(j)), 1000, 1000)
      end do
   end do
   call changes()
   call keeps()
   call refuses_before_it_trains()
   call requires_gradients()
   call finish()

contains

   subroutine load(model, name)
      type(torch_module), intent(inout) :: model
      character(*), intent(in) :: name

      call model%load("direct_" // name // ".pt", backend=backend)
   end subroutine load

   !> An argument that owns its memory, and the tensor that does, if it is one
   function owned(x, owner, tensor) result(arg)
      real(real64), intent(in), target :: x(:, :)
      character(*), intent(in) :: owner
      type(torch_tensor), intent(inout) :: tensor
      type(torch_arg) :: arg

      type(torch_tensor) :: plain

      select case (owner)
      case ("copy")
         arg = torch_copy(x)
         return
      case ("memory")
         call tensor%from_array(torch_copy(x))
      case ("torch")
         call plain%from_array(x)
         tensor = plain*1
      end select
      arg = tensor%arg()
   end function owned

   function expected(name, x) result(y)
      character(*), intent(in) :: name
      real(real64), intent(in) :: x(:, :)
      real(real64), allocatable :: y(:, :)

      select case (name)
      case ("turned")
         y = transpose(x)
      case ("sliced")
         y = x(2:, :)
      case default
         y = x
      end select
   end function expected

   subroutine passes(name, owner, m, n)
      character(*), intent(in) :: name, owner
      integer, intent(in) :: m, n

      type(torch_module) :: model
      type(torch_tensor) :: tensor, output
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      type(torch_arg) :: arg
      real(real64), allocatable, target :: x(:, :)
      real(real64), allocatable :: y(:, :), more(:, :), wanted(:, :)
      real(real64), pointer :: p(:, :)
      character(:), allocatable :: what
      integer :: last, attempt

      what = backend // ", " // name // ", " // owner // ": "
      allocate (x(m, n))
      call random_number(x)
      wanted = expected(name, x)
      call load(model, name)
      allocate (y, mold=wanted)
      allocate (more(m, n))
      do attempt = 1, 3  ! the first two are looked at more closely
         last = 1
         y = 0
         if (name == "pair") then
            last = 2
            call model%forward([owned(x, owner, tensor)], [torch_out(more), torch_out(y)])
            call expect(all(abs(more - x - 1) < 1d-12), what // "what is new beside the input")
         else
            call model%forward([owned(x, owner, tensor)], [torch_out(y)])
         end if
         call tensor%free()
         call expect(all(same(y, wanted)), what // "into an array")

         call model%forward([owned(x, owner, tensor)], results)
         call tensor%free()
         call results%to_array(last, p)
         call expect(all(same(p, wanted)), what // "results")
         call results%get(last, output)
         call results%free()
         call output%to_array(p)
         call expect(all(same(p, wanted)), what // "a tensor of results that were freed")
         if (name == "pair") cycle

         call model%forward([owned(x, owner, tensor)], output)
         call tensor%free()
         call output%to_array(p)
         call expect(all(same(p, wanted)), what // "a tensor")

         call list%create()
         arg = owned(x, owner, tensor)
         if (owner == "copy") then
            call list%add_array(arg)
         else
            call list%add_tensor(tensor)
         end if
         call model%forward(list, output)
         call list%free()
         call tensor%free()
         call output%to_array(p)
         call expect(all(same(p, wanted)), what // "a list that was freed")
         call model%forward([output%arg()], output)
         call output%to_array(p)
         call expect(all(same(p, expected(name, wanted))), what // "a result that is its own input")
      end do
   end subroutine passes

   elemental logical function same(a, b)
      real(real64), intent(in) :: a, b

      same = .not. abs(a - b) > 0 .and. a > -1  ! what is no number is not the same
   end function same

   !> What has an owner of its own may be changed in place, and nobody else sees it
   subroutine changes()
      type(torch_module) :: model
      type(torch_tensor) :: tensor
      real(real64), target :: x(4), y(4)
      character(:), allocatable :: errmsg
      integer :: stat, attempt

      call load(model, "passing")
      x = [1, 2, 3, 4]
      do attempt = 1, 3
         y = 0
         call model%call("changed", [torch_copy(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, backend // ": a copy that is changed in place", errmsg)
         call expect(all(same(y, 2*x)), backend // ": what became of it")
         call tensor%from_array(torch_copy(x))
         call model%call("changed", [tensor%arg()], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_OK, backend // ": a tensor with memory of its own", errmsg)
         call model%call("changed", [tensor%arg()], [torch_out(y)])
         call expect(all(same(y, 4*x)), backend // ": and is changed by the next call, too")
         call model%call("changed", [torch_in(x)], [torch_out(y)], stat=stat)
         call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, backend // ": an array is none of these")
         x = [1, 2, 3, 4]
      end do
   end subroutine changes

   !> A model may keep what ends with the call
   subroutine keeps()
      type(torch_module) :: model
      type(torch_tensor) :: tensor
      real(real64) :: x(4, 3), y(4, 3)
      integer :: i

      call load(model, "keeper")
      do i = 1, size(owners)
         call random_number(x)
         call model%forward([owned(x, trim(owners(i)), tensor)], [torch_out(y)])
         call tensor%free()
         call expect(all(same(y, x + 1)), backend // ": a model that keeps " // trim(owners(i)))
         call model%call("kept", [torch_arg ::], [torch_out(y)])
         call expect(all(same(y, x)), backend // ": what it kept of " // trim(owners(i)))
      end do
   end subroutine keeps

   !> A call that fails has changed nothing in the model
   subroutine refuses_before_it_trains()
      type(torch_module) :: model
      real(real64) :: before(3), after(3), loss
      real(real64) :: x(3), goal(3)
      character(:), allocatable :: errmsg
      integer :: stat

      call load(model, "spoiler")
      call model%create_optimizer_sgd(0.1_real64)
      x = 1
      call model%forward([torch_copy(x)], [torch_out(before)])
      goal = 0
      call model%train([torch_in(x)], [torch_in(goal)], loss, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "training that changes its input", errmsg)
      x = 1
      call model%forward([torch_copy(x)], [torch_out(after)])
      call expect(all(same(before, after)), "and has not trained")
      call model%train([torch_copy(x)], [torch_in(goal)], loss)
      call model%forward([torch_copy(x)], [torch_out(after)])
      call expect(all(after < before), "with a copy it trains")
   end subroutine refuses_before_it_trains

   !> Of sum(y + x), where y = x*[1, 2, 3]
   subroutine slope_of(x, y, what)
      type(torch_tensor), intent(in) :: x, y
      character(*), intent(in) :: what

      type(torch_tensor) :: total, gradient
      real(real64) :: slope(3)

      total = torch_sum(y + x)
      call x%zero_grad()
      call total%backward()
      call x%grad(gradient)
      call gradient%copy_to(torch_out(slope))
      call expect(all(same(slope, [2d0, 3d0, 4d0])), what)
   end subroutine slope_of

   !> A gradient through a model is right, or refused
   subroutine requires_gradients()
      type(torch_module) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: x, y
      type(torch_tensor_wrap) :: list
      real(real64), target :: array(3)
      real(real64) :: values(3)

      array = [1, 2, 3]
      call load(model, "weighted")
      call scope%begin()
      call x%from_array(array)
      call x%set_requires_grad()
      call list%create()
      call list%add_tensor(x)
      call model%forward([x%arg()], y)
      call slope_of(x, y, "the gradient goes through the model")
      call model%forward(list, y)
      call slope_of(x, y, "and through the model with a list")
      call model%forward([x%arg()], [torch_out(values)])
      call expect(all(same(values, [1d0, 4d0, 9d0])), backend // ": an array gets the values")
      call scope%no_grad()
      call model%forward([x%arg()], [torch_out(values)])
      call expect(all(same(values, [1d0, 4d0, 9d0])), backend // ": without gradients it is an input like any other")
      call model%forward(list, y)
      call expect(.not. y%requires_grad(), backend // ": and so is its result")
      call list%free()
      call scope%end()
   end subroutine requires_gradients
end program test_owners
