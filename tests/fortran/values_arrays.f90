! SPDX-License-Identifier: MIT
!> Arrays of tensors: constructors, sections, intrinsic functions that move elements, arrays that grow.
module arrays
   use check, only : expect
   use ftn_pytorch
   use passes, only : are, five, is, make, run, three
   implicit none
   public

contains

   subroutine numbers(x)
      type(torch_tensor), intent(inout) :: x(:)

      integer :: i

      do i = 1, size(x)
         call make(x(i), i)
      end do
   end subroutine numbers

   subroutine add_one(x, n)
      integer, intent(in) :: n
      type(torch_tensor), intent(inout) :: x(n)

      integer :: i

      do i = 1, n
         x(i) = x(i) + 1
      end do
   end subroutine add_one

   subroutine constructors_as_arguments()
      call are([three*five, three], [15, 3])
      call are([three*five, five*three + 1], [15, 16])
      call are([three, five], [3, 5])
      call is(three, 3)
   end subroutine constructors_as_arguments

   subroutine constructors_assigned()
      type(torch_tensor) :: x(2)

      x = [three*five, three]
      call are(x, [15, 3])
      x = [x(2), x(1) + 1]
      call are(x, [3, 16])
      x = three
      call are(x, [3, 3])
   end subroutine constructors_assigned

   subroutine constructors_assigned_to_allocated()
      type(torch_tensor), allocatable :: x(:)

      allocate (x(2))
      x = [three*five, three]
      call are(x, [15, 3])
      x = [x(1)*2, x(1) + x(2)]
      call are(x, [30, 18])
      x = five
      call are(x, [5, 5])
   end subroutine constructors_assigned_to_allocated

   subroutine constructor_with_an_array()
      type(torch_tensor), allocatable :: x(:), y(:)

      allocate (x(1), y(2))
      x(1) = three
      y = [x, three + five]
      call are(y, [3, 8])
   end subroutine constructor_with_an_array

   subroutine constructors_with_loops()
      type(torch_tensor) :: x(4)
      integer :: i

      x = [(three*i, i=1, 4)]
      call are(x, [3, 6, 9, 12])
      call are([(x(i) + five, i=4, 1, -1)], [17, 14, 11, 8])
   end subroutine constructors_with_loops

   subroutine growth()
      type(torch_tensor), allocatable :: x(:), longer(:)
      integer :: i

      allocate (x(1))
      x(1) = three
      do i = 2, 4
         allocate (longer(i))
         longer(:i - 1) = x
         longer(i) = three*i
         call move_alloc(longer, x)
      end do
      call are(x, [3, 6, 9, 12])
   end subroutine growth

   subroutine order()
      type(torch_tensor) :: x(3), kept

      call numbers(x)
      x = x(3:1:-1)
      call are(x, [3, 2, 1])
      x = x([2, 3, 1])
      call are(x, [2, 1, 3])
      kept = x(1)
      x(1) = x(3)
      x(3) = kept
      call are(x, [3, 1, 2])
      x(1:2) = x(2:3)
      call are(x, [1, 2, 2])
   end subroutine order

   subroutine shifts()
      type(torch_tensor) :: x(4), y(4)

      call numbers(x)
      y = cshift(x, 1)
      call are(y, [2, 3, 4, 1])
      y = eoshift(x, 1, boundary=x(1))
      call are(y, [2, 3, 4, 1])
      call are(x, [1, 2, 3, 4])
   end subroutine shifts

   subroutine selections()
      type(torch_tensor) :: x(4), y(4)

      call numbers(x)
      y = pack(x, [.true., .true., .true., .true.])
      call are(y, [1, 2, 3, 4])
      call are(pack(x, [.true., .false., .false., .true.]), [1, 4])
      call are(x([4, 1]), [4, 1])
      call are(x(4:1:-1), [4, 3, 2, 1])
   end subroutine selections

   subroutine shapes()
      type(torch_tensor) :: x(4), y(4), z(2, 2)
      integer :: i

      call numbers(x)
      call are(reshape(x, [2]), [1, 2])
      y(1:2) = spread(x(3), 1, 2)
      call are(y(1:2), [3, 3])
      do i = 1, 2
         z(:, i) = x(2*i - 1:2*i)
      end do
      call are(z(2, :), [2, 4])
      z = z(:, [2, 1])
      call are(z(1, :), [3, 1])
   end subroutine shapes

   subroutine merged()
      type(torch_tensor) :: c

      c = merge(three, five, five%is_set())
      call is(c, 3)
      c = merge(three*five, five + three, .false.)
      call is(c, 8)
   end subroutine merged

   subroutine sections_as_arguments()
      type(torch_tensor) :: x(6)

      call numbers(x)
      call add_one(x, 6)
      call add_one(x(2:4), 3)
      call are(x, [2, 4, 5, 6, 6, 7])
      call add_one(x(1:6:2), 3)
      call are(x, [3, 4, 6, 6, 7, 7])
   end subroutine sections_as_arguments

   subroutine freed()
      type(torch_tensor) :: x(3)

      call numbers(x)
      call x%free()
      call expect(.not. (x(1)%is_set() .or. x(3)%is_set()), "all elements are freed")
   end subroutine freed

   subroutine automatic_arrays()
      call with_extent(3)
   contains
      subroutine with_extent(n)
         integer, intent(in) :: n

         type(torch_tensor) :: x(n), y(n, 2)
         integer :: i

         call numbers(x)
         do i = 1, n
            y(i, 2) = x(i)*2
         end do
         call are(y(:, 2), [2, 4, 6])
      end subroutine with_extent
   end subroutine automatic_arrays

   subroutine copies_by_source()
      type(torch_tensor), allocatable :: x, y

      allocate (x, source=three)
      allocate (y, source=three*five)
      call is(x, 3)
      call is(y, 15)
      call is(y + x, 18)
      deallocate (x, y)
      call is(three, 3)
   end subroutine copies_by_source

   subroutine deallocated()
      type(torch_tensor), allocatable :: x(:), s
      type(torch_tensor), pointer :: p

      allocate (x(2), s, p)
      call make(x(1), 1)
      s = x(1) + 1
      p = s*2
      deallocate (x, s)
      call is(p, 4)
      deallocate (p)
   end subroutine deallocated

   subroutine values_in_arrays()
      call run("constructors as arguments", constructors_as_arguments)
      call run("constructors assigned", constructors_assigned)
      call run("constructors assigned to allocated", constructors_assigned_to_allocated)
      call run("constructor with an array", constructor_with_an_array)
      call run("constructors with loops", constructors_with_loops)
      call run("growth", growth)
      call run("order", order)
      call run("shifts", shifts)
      call run("selections", selections)
      call run("shapes", shapes)
      call run("merge", merged)
      call run("sections as arguments", sections_as_arguments)
      call run("freed", freed)
      call run("automatic arrays", automatic_arrays)
      call run("copies by source", copies_by_source)
      call run("deallocated", deallocated)
   end subroutine values_in_arrays
end module arrays
