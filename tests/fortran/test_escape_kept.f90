! SPDX-License-Identifier: MIT
!> As test_escape, for descriptions that are kept: in variables, components, modules, lists and tensors.
module escape_keeper
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   implicit none
   private

   public :: keeper, module_setup, module_run, run_kept, keep, step, keep_in

   type :: keeper
      type(torch_arg) :: args(2)
   end type keeper

   type(torch_arg), allocatable, public :: kept(:)
   real(real64) :: hidden(4) = 0

contains

   subroutine module_setup()
      hidden = 1
      kept = [torch_out(hidden)]
   end subroutine module_setup

   function module_run(model) result(right)
      type(torch_pymodule), intent(in) :: model
      logical :: right
      integer :: k

      hidden = 1
      do k = 1, 3
         call model%call("add_one", kept)
      end do
      right = all(hidden == 4)
   end function module_run

   subroutine keep(args)
      type(torch_arg), target :: args(:)

      kept = args
   end subroutine keep

   subroutine step(model)
      type(torch_pymodule), intent(in) :: model

      call model%call("add_one", kept)
   end subroutine step

   subroutine run_kept(model)
      type(torch_pymodule), intent(in) :: model

      call model%call("add_one", kept)
   end subroutine run_kept

   subroutine keep_in(list, x)
      type(torch_tensor_wrap), intent(inout) :: list
      real(real64), target :: x(:)

      call list%create()
      call list%add_array(x)
   end subroutine keep_in
end module escape_keeper

program test_escape_kept
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script
   use escape_keeper
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("escape.py"))
   call expect(kept_in_allocatable(), "kept in an allocatable")
   call expect(kept_with_one_element(), "kept, one element")
   call expect(kept_elsewhere(), "kept elsewhere, used by another procedure")
   call expect(global_descriptions(), "global descriptions")
   call expect(component_descriptions(), "descriptions in a derived type")
   call expect(kept_before_stored(), "kept before it is stored")
   call expect(kept_scalar(), "kept scalar")
   call expect(kept_automatic(5), "kept automatic array")
   call expect(kept_allocatable(), "kept allocatable")
   call expect(kept_in_list(), "kept in a torch_tensor_wrap")
   call expect(kept_in_tensor(), "kept in a torch_tensor")
   call module_setup()
   call expect(module_run(model), "private array of a module")
   call finish()

contains

   function kept_in_allocatable() result(right)
      logical :: right
      real(real64) :: x(4)
      type(torch_arg), allocatable :: args(:)
      integer :: k

      x = 1
      args = [torch_out(x)]
      do k = 1, 3
         call model%call("add_one", args)
      end do
      right = all(x == 4)
   end function kept_in_allocatable

   function kept_with_one_element() result(right)
      logical :: right
      real(real64) :: x(1), sum
      type(torch_arg) :: args(1)
      integer :: k

      args = [torch_out(x)]
      sum = 0
      x(1) = 1
      do k = 1, 3
         call model%call("add_one", args)
         sum = sum + x(1)
      end do
      right = sum == 9
   end function kept_with_one_element

   function kept_elsewhere() result(right)
      logical :: right
      real(real64) :: x(4)
      integer :: k

      x = 1
      call keep([torch_out(x)])
      do k = 1, 3
         call step(model)
      end do
      right = all(x == 4)
   end function kept_elsewhere

   function global_descriptions() result(right)
      logical :: right
      real(real64) :: x(4)
      integer :: k

      kept = [torch_out(x)]
      x = 1
      do k = 1, 3
         call run_kept(model)
      end do
      right = all(x == 4)
      deallocate (kept)
   end function global_descriptions

   function component_descriptions() result(right)
      logical :: right
      real(real64) :: x(4)
      type(keeper) :: plan
      integer :: k

      plan%args(1) = torch_out(x)
      x = 1
      do k = 1, 3
         call model%call("add_one", plan%args(1:1))
      end do
      right = all(x == 4)
   end function component_descriptions

   function kept_before_stored() result(right)
      logical :: right
      real(real64) :: x(2)
      type(torch_arg) :: args(1)

      args(1) = torch_out(x)
      call keep(args)
      x = 1
      call step(model)
      right = x(1) == 2 .and. x(2) == 2
   end function kept_before_stored

   function kept_scalar() result(right)
      logical :: right
      real(real64) :: loss, x(2)
      type(torch_arg) :: args(1)

      args(1) = torch_out(loss)
      x = 3
      loss = 1
      call model%call("total", [torch_in(x)], args)
      right = loss == 6
   end function kept_scalar

   function kept_automatic(n) result(right)
      integer, intent(in) :: n
      logical :: right
      real(real64) :: x(n)

      call keep([torch_out(x)])
      x = 1
      call step(model)
      right = x(1) == 2 .and. x(n) == 2
   end function kept_automatic

   function kept_allocatable() result(right)
      logical :: right
      real(real64), allocatable :: x(:)

      allocate (x(3))
      call keep([torch_out(x)])
      x = 1
      call step(model)
      right = x(1) == 2 .and. x(3) == 2
   end function kept_allocatable

   function kept_in_list() result(right)
      logical :: right
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      real(real64) :: x(3)
      integer :: k

      call keep_in(list, x)
      x = 1
      do k = 1, 3
         call model%forward(list, output)
      end do
      right = all(x == 4)
   end function kept_in_list

   function kept_in_tensor() result(right)
      logical :: right
      type(torch_tensor) :: tensor
      real(real64) :: x(3)
      integer :: k

      call tensor%from_array(x)
      x = 1
      do k = 1, 3
         call model%call("add_one", [tensor%arg()])
      end do
      right = all(x == 4)
   end function kept_in_tensor
end program test_escape_kept
