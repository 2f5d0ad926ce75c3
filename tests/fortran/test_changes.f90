! SPDX-License-Identifier: MIT
!> torch may change the shape, the type and the memory of a tensor at any time: every question is answered anew.
program test_changes
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model
   character(8) :: backend
   integer :: i

   call random_init(repeatable=.true., image_distinct=.true.)
   call model%load(script("changing.py"))
   call a_number_has_its_value()
   call a_number_is_a_tensor_for_scripts()
   call shapes_change()
   call memory_changes()
   call an_array_stays_where_it_is()
   call overlapping_arrays()
   call parameters_get_other_memory()
   call parameters_get_another_type()
   call converted_results()
   do i = 1, command_argument_count()
      call get_command_argument(i, backend)
      call a_number_for_a_model(trim(backend))
      if (backend == "direct") call results_keep_the_memory_before()  ! in Python, the result is the input itself
   end do
   call finish()

contains

   subroutine a_number_has_its_value()
      type(torch_tensor) :: t
      real(real64) :: a, b

      call t%from_array(torch_in(2d0))
      call t%copy_from(torch_in(5d0))
      call t%copy_to(torch_out(a))
      call t%item(b)
      call expect(a == 5 .and. b == 5, "a number that was overwritten")
   end subroutine a_number_has_its_value

   !> Before and after an operation of torch
   subroutine a_number_is_a_tensor_for_scripts()
      type(torch_tensor) :: t
      type(torch_results) :: results
      character(:), allocatable :: before, after

      call t%from_array(torch_in(2d0))
      call model%call("kind", [t%arg()], results)
      call results%scalar(1, before)
      call t%copy_from(torch_in(5d0))
      call model%call("kind", [t%arg()], results)
      call results%scalar(1, after)
      call expect(before == "Tensor" .and. after == "Tensor", "a number arrives as " // before // " and " // after)
   end subroutine a_number_is_a_tensor_for_scripts

   !> The same scalar argument of a saved model, without Python and with it
   subroutine a_number_for_a_model(backend)
      character(*), intent(in) :: backend

      type(torch_module) :: saved
      type(torch_tensor) :: t
      real(real32) :: a(3), b(3), plus(3), minus(3)

      a = [1.0, 2.0, 3.0]
      b = [10.0, 20.0, 30.0]
      call saved%load("direct_two.pt", backend=backend)
      call t%from_array(torch_in(2d0))
      call saved%forward([torch_in(a), torch_in(b), t%arg()], [torch_out(plus), torch_out(minus)])
      call expect(all(plus == a + 2*b), backend // ": a number in a tensor")
      call t%copy_from(torch_in(5d0))
      call saved%forward([torch_in(a), torch_in(b), t%arg()], [torch_out(plus), torch_out(minus)])
      call expect(all(plus == a + 5*b), backend // ": a number that was overwritten")
   end subroutine a_number_for_a_model

   !> A model that returns its input, whose tensor gets other memory afterwards
   subroutine results_keep_the_memory_before()
      integer, parameter :: n = 1000
      type(torch_module) :: saved
      type(torch_results) :: results
      type(torch_tensor) :: x, y, others(8)
      real(real32), pointer :: p(:)
      integer :: k

      call saved%load("direct_passing.pt", backend="direct")
      call x%ones([n])
      call y%zeros([n])
      call saved%forward([x%arg()], results)
      call results%to_array(1, p)
      call torch_call("Tensor.set_", [x%arg(), y%arg()])
      do k = 1, size(others)
         call others(k)%full([n], -7.0)
      end do
      call expect(all(p == 1), "direct: a result in memory that its input no longer has")
   end subroutine results_keep_the_memory_before

   subroutine shapes_change()
      type(torch_tensor) :: x, y
      real(real64), target :: u(2, 3)
      real(real64), pointer :: p(:, :, :)
      integer :: stat

      call y%ones([2, 3])
      call expect(all(y%shape() == [2, 3]), "a shape before it changes")
      call torch_call("Tensor.unsqueeze_", [y%arg(), torch_in(0)])
      call expect(size(y%shape()) == 3, "an axis more")
      if (size(y%shape()) == 3) call expect(all(y%shape() == [2, 3, 1]), "an axis more: the shape")
      u = 1
      call x%from_array(u)
      call torch_call("Tensor.unsqueeze_", [x%arg(), torch_in(0)])
      call expect(size(x%shape()) == 3, "an axis more of an array")
      u(2, 3) = 7
      call x%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a pointer with an axis more")
      if (stat == FTN_PYTORCH_OK) call expect(p(2, 3, 1) == 7, "the same memory with an axis more")
   end subroutine shapes_change

   subroutine memory_changes()
      integer, parameter :: many = 100000
      type(torch_tensor) :: v
      real(real32), pointer :: q(:)

      call v%ones([4])
      call v%to_array(q)
      call expect(size(q) == 4, "a tensor before it grows")
      call torch_call("Tensor.resize_", [v%arg(), torch_in(many)])
      call torch_call("Tensor.fill_", [v%arg(), torch_in(3.0)])
      call v%to_array(q)
      call expect(size(q) == many, "a tensor that has grown")
      call expect(all(q == 3), "the values of a tensor that has grown")
   end subroutine memory_changes

   !> Results go into the array of the program as long as the tensor shows that
   subroutine an_array_stays_where_it_is()
      type(torch_tensor) :: x, y
      real(real64), target :: u(3), v(3)
      integer :: stat

      u = [1, 2, 3]
      v = [4, 5, 6]
      call x%from_array(u)
      call y%from_array(v)
      call model%call("scaled", [torch_in(v), torch_in(2d0)], [x%arg()])
      call expect(all(u == [8, 10, 12]), "a tensor as output")
      call torch_call("Tensor.mul_", [x%arg(), torch_in(2d0)])
      call model%call("scaled", [torch_in(v), torch_in(2d0)], [x%arg()])
      call expect(all(u == [8, 10, 12]), "a tensor as output after an operation of torch")
      call torch_call("Tensor.set_", [x%arg(), y%arg()])
      call model%call("scaled", [torch_in(v), torch_in(3d0)], [x%arg()], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an output that shows other memory")
      call expect(all(u == [8, 10, 12]) .and. all(v == [4, 5, 6]), "an output that shows other memory: arrays")
   end subroutine an_array_stays_where_it_is

   !> As `u(1:n) = u(2:n + 1)` does it
   subroutine overlapping_arrays()
      integer, parameter :: n = 4096
      type(torch_tensor) :: x
      real(real64), target :: u(n + 1), before(n + 1)

      call random_number(before)
      u = before
      call x%from_array(u(2:))
      call x%copy_from(torch_in(u(:n)))
      call expect(all(u(2:) == before(:n)), "values of an array that overlaps, from below")
      u = before
      call x%from_array(u(:n))
      call x%copy_from(torch_in(u(2:)))
      call expect(all(u(:n) == before(2:)), "values of an array that overlaps, from above")
      u = before
      call x%from_array(u(2::2))
      call x%copy_from(torch_in(u(1:n:2)))
      call expect(all(u(2::2) == before(1:n:2)) .and. all(u(1:n:2) == before(1:n:2)), "values that lie in between")
   end subroutine overlapping_arrays

   subroutine parameters_get_other_memory()
      type(torch_results) :: r
      type(torch_tensor) :: w
      real(real32), pointer :: p(:, :), q(:, :)

      call model%parameters(r)
      call r%get("net.weight", w)
      call w%to_array(p)
      call r%to_array("net.weight", q)
      call expect(associated(p, q), "a parameter in two ways")
      call model%call("renew", [torch_in(9d0)])
      call w%to_array(p)
      call r%to_array("net.weight", q)
      call expect(all(p == 9), "a parameter with other memory")
      call expect(all(q == 9), "a parameter among results with other memory")
   end subroutine parameters_get_other_memory

   subroutine parameters_get_another_type()
      type(torch_results) :: r
      type(torch_tensor) :: w
      real(real32), pointer :: p(:, :)
      real(real64), pointer :: q(:, :)
      integer :: stat

      call model%parameters(r)
      call r%get("net.weight", w)
      call expect(w%dtype() == "float32", "the type of a parameter")
      call model%call("widen")
      call expect(w%dtype() == "float64", "the type that a parameter has got")
      call w%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a pointer of the type before")
      call r%to_array("net.weight", p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "a pointer of the type before, among results")
      call w%to_array(q, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a pointer of the new type")
      if (stat == FTN_PYTORCH_OK) call expect(all(q == 9), "the values of the new type")
   end subroutine parameters_get_another_type

   !> Half precision is converted on its way: not once and for all
   subroutine converted_results()
      type(torch_results) :: r
      real(real32) :: w(3, 2)

      call model%call("half_weight", results=r)
      call model%call("fill_half", [torch_in(1d0)])
      call r%copy_to("weight", w)
      call expect(all(w == 1), "a parameter of half precision")
      call model%call("fill_half", [torch_in(2d0)])
      call r%copy_to("weight", w)
      call expect(all(w == 2), "a parameter of half precision that has changed")
   end subroutine converted_results
end program test_changes
