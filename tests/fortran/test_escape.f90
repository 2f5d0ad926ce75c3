! SPDX-License-Identifier: MIT
!> Arrays that only a description knows are read and written through it, whatever the optimizer makes of them.
!>
!> None of the arrays has the TARGET attribute, and nothing but torch_in or torch_out mentions them near the call: an
!> interface that lets the compiler believe that a description keeps no address gives stale values in most of these
!> cases. The script adds one to every element. Built with several levels of optimization.
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

program test_escape
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script
   use escape_keeper
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("escape.py"))
   call expect(described_in_the_call(), "described in the call")
   call expect(described_as_output(), "described as output")
   call expect(kept_in_allocatable(), "kept in an allocatable")
   call expect(kept_with_one_element(), "kept, one element")
   call expect(scalar_by_reference(), "scalar by reference")
   call expect(kept_elsewhere(), "kept elsewhere, used by another procedure")
   call expect(allocatable_array(), "allocatable array")
   call expect(read_in_loop(), "read in a loop")
   call expect(automatic_array(4), "automatic array")
   call expect(read_before_and_after(), "read before and after")
   call expect(stored_before_the_call(), "stored before the call, never read by the program")
   call expect(stored_in_loop(), "stored in a loop")
   call module_setup()
   call expect(module_run(model), "private array of a module")
   call expect(sections_of_descriptions(), "sections of descriptions")
   call expect(element_of_descriptions(), "element of descriptions")
   call expect(global_descriptions(), "global descriptions")
   call expect(component_descriptions(), "descriptions in a derived type")
   call expect(kept_before_stored(), "kept before it is stored")
   call expect(kept_scalar(), "kept scalar")
   call expect(kept_automatic(5), "kept automatic array")
   call expect(kept_allocatable(), "kept allocatable")
   call expect(kept_in_list(), "kept in a torch_tensor_wrap")
   call expect(kept_in_tensor(), "kept in a torch_tensor")
   call expect(named(), "named arguments")
   call finish()

contains

   function described_in_the_call() result(right)
      logical :: right
      real(real64) :: x(4)
      integer :: k

      x = 1
      do k = 1, 3
         call model%call("add_one", [torch_out(x)])
      end do
      right = all(x == 4)
   end function described_in_the_call

   function described_as_output() result(right)
      logical :: right
      real(real64) :: x(4), y(4)
      integer :: k

      x = 1
      y = 1
      do k = 1, 3
         call model%call("plus_one", [torch_in(x)], [torch_out(y)])
         x = y
      end do
      right = all(y == 4)
   end function described_as_output

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

   function scalar_by_reference() result(right)
      logical :: right
      real(real64) :: x(2), loss

      x = 1
      loss = -1
      call model%call("total", [torch_in(x)], [torch_out(loss)])
      right = loss == 2
   end function scalar_by_reference

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

   function allocatable_array() result(right)
      logical :: right
      real(real64), allocatable :: x(:)
      type(torch_arg), allocatable :: args(:)
      integer :: k

      allocate (x(4))
      x = 1
      args = [torch_out(x)]
      do k = 1, 3
         call model%call("add_one", args)
      end do
      right = all(x == 4)
   end function allocatable_array

   function read_in_loop() result(right)
      logical :: right
      real(real64) :: x(4), total
      type(torch_arg) :: args(1)
      integer :: k

      x = 1
      total = 0
      args = [torch_out(x)]
      do k = 1, 3
         call model%call("add_one", args)
         total = total + sum(x)
      end do
      right = total == 4*(2 + 3 + 4)
   end function read_in_loop

   function automatic_array(n) result(right)
      integer, intent(in) :: n
      logical :: right
      real(real64) :: x(n)
      type(torch_arg) :: args(1)
      integer :: k

      x = 1
      args = [torch_out(x)]
      do k = 1, 3
         call model%call("add_one", args)
      end do
      right = all(x == 4)
   end function automatic_array

   function read_before_and_after() result(right)
      logical :: right
      real(real64) :: x(2), before
      type(torch_arg) :: args(1)

      x = [5, 6]
      args = [torch_out(x)]
      before = x(1)
      call model%call("add_one", args)
      right = x(1) - before == 1
   end function read_before_and_after

   function stored_before_the_call() result(right)
      logical :: right
      real(real64) :: x(2), y(2)
      type(torch_arg) :: inputs(1), outputs(1)

      inputs = [torch_in(x)]
      outputs = [torch_out(y)]
      x = 1
      y = 10
      call model%call("plus_one", inputs, outputs)
      right = all(y == 2)
   end function stored_before_the_call

   function stored_in_loop() result(right)
      logical :: right
      real(real64) :: x(2)
      type(torch_arg) :: args(1)
      integer :: k

      args = [torch_out(x)]
      right = .true.
      do k = 1, 3
         x = 10*k
         call model%call("add_one", args)
         right = right .and. x(2) == 10*k + 1
      end do
   end function stored_in_loop

   function sections_of_descriptions() result(right)
      logical :: right
      real(real64) :: x(4), y(4)
      type(torch_arg) :: args(4)
      integer :: k

      args = [torch_in(x), torch_in(x), torch_out(y), torch_out(y)]
      x = 1
      y = 2
      do k = 1, 3
         call model%call("plus_one", args(1:1), args(3:3))
         call model%call("pair_plus_one", args(1:3:2), args(4:4))
      end do
      right = all(y == 3)
   end function sections_of_descriptions

   function element_of_descriptions() result(right)
      logical :: right
      real(real64) :: x(4)
      type(torch_arg) :: args(1)
      integer :: k

      args(1) = torch_out(x)
      x = 1
      do k = 1, 3
         call model%call("add_one", args)
      end do
      right = all(x == 4)
   end function element_of_descriptions

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

   function named() result(right)
      logical :: right
      real(real64) :: x(3), y(3)
      type(torch_arg) :: inputs(1), outputs(1)
      integer :: k

      inputs = [torch_in("x", x)]
      outputs = [torch_out("y", y)]
      x = 1
      do k = 1, 3
         y = 0
         call model%call("named_plus_one", inputs, outputs)
         x = y
      end do
      right = all(y == 4)
   end function named
end program test_escape
