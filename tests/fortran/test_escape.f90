! SPDX-License-Identifier: MIT
!> Arrays that only a description knows are read and written through it, whatever the optimizer makes of them.
!>
!> None of the arrays has the TARGET attribute, and nothing but torch_in or torch_out mentions them near the call: an
!> interface that lets the compiler believe that a description keeps no address gives stale values in most of these
!> cases. Built with several levels of optimization. test_escape_kept has the descriptions that are kept elsewhere.
program test_escape
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("escape.py"))
   call expect(described_in_the_call(), "described in the call")
   call expect(described_as_output(), "described as output")
   call expect(scalar_by_reference(), "scalar by reference")
   call expect(allocatable_array(), "allocatable array")
   call expect(read_in_loop(), "read in a loop")
   call expect(automatic_array(4), "automatic array")
   call expect(read_before_and_after(), "read before and after")
   call expect(stored_before_the_call(), "stored before the call, never read by the program")
   call expect(stored_in_loop(), "stored in a loop")
   call expect(sections_of_descriptions(), "sections of descriptions")
   call expect(element_of_descriptions(), "element of descriptions")
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

   function scalar_by_reference() result(right)
      logical :: right
      real(real64) :: x(2), loss

      x = 1
      loss = -1
      call model%call("total", [torch_in(x)], [torch_out(loss)])
      right = loss == 2
   end function scalar_by_reference

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
