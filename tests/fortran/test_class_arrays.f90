! SPDX-License-Identifier: MIT
!> Components of class arrays, in the two ways that are right with every compiler, and arrays as subscripts.
program test_class_arrays
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, finish, script
   use ftn_pytorch
   implicit none

   type :: cell
      real(real64) :: pad = -1, t = 0
   end type cell
   type, extends(cell) :: wet
      real(real64) :: q(3) = 7
   end type wet

   type(torch_pymodule) :: model
   class(cell), allocatable, target :: cells(:)
   integer :: i

   allocate (wet :: cells(4))
   do i = 1, 4
      cells(i)%t = i
   end do
   call model%load(script("results.py"))
   call copied(cells)
   call selected(cells)
   call expect(all([(cells(i)%t, i=1, 4)] - [2, 4, 6, 8] == 0), "the program's own array")
   call subscripted()
   call finish()

contains

   subroutine copied(c)
      class(cell), intent(in) :: c(:)

      real(real64) :: y(4), both(2, 2)

      call model%forward([torch_copy((c%t))], [torch_out("double", y)])
      call expect(all(y - [2, 4, 6, 8] == 0), "copy of a component")
      call model%forward([torch_copy(reshape(c%t, [2, 2]))], [torch_out("double", both)])
      call expect(all(both - reshape([2, 4, 6, 8], [2, 2]) == 0), "copy in another shape")
   end subroutine copied

   subroutine selected(c)
      class(cell), intent(inout), target :: c(:)

      select type (c)
      type is (wet)
         call model%forward([torch_in(c(:)%t)], [torch_out("double", c(:)%t)])
         call expect(all(c%t - [2, 4, 6, 8] == 0), "component in a branch type is")
         call expect(all([c(1)%q, c(4)%q, c%pad] - [7, 7, 7, 7, 7, 7, -1, -1, -1, -1] == 0), "its neighbours")
      end select
   end subroutine selected

   subroutine subscripted()
      real(real64) :: x(3, 4), y(2, 4)
      integer :: order(2)

      x = reshape([(i, i=1, 12)], [3, 4])
      order = [3, 1]
      call model%forward([torch_copy((x(order, :)))], [torch_out("double", y)])
      call expect(all(abs(y - 2*x(order, :)) < 1e-12_real64), "copy of a section with an array as subscript")
   end subroutine subscripted
end program test_class_arrays
