! SPDX-License-Identifier: MIT
!> torch_call reaches all of torch: functions, methods, every kind of argument and result, and its errors.
program test_torch_call
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_scope) :: scope

   call scope%begin()
   call functions_and_methods()
   call only_operators()
   call arguments()
   call shapes_are_tuples()
   call results_of_every_kind()
   call arrays_are_not_copied()
   call layouts()
   call foreign_results()
   call refuses()
   call texts_of_torch()
   call trained_further_in_python("reversed")
   call trained_further_in_python("same")
   call modes_of_python()
   call scope%end()
   call finish()

contains

   subroutine functions_and_methods()
      real(real64), target :: a(3)
      real(real64) :: found(3)
      type(torch_tensor) :: x, y

      a = [1d0, 2d0, 3d0]
      call x%from_array(a)
      call torch_call("exp", [x%arg()], y)
      call y%copy_to(torch_out(found))
      call expect(all(abs(found - exp(a)) < 1d-14), "a function")
      call torch_call("torch.exp", [x%arg()], y)
      call expect(y%dtype() == "float64", "a leading torch.")
      call torch_call("nn.functional.softmax", [x%arg(), torch_in("dim", 0)], [torch_out(found)])
      call expect(abs(sum(found) - 1) < 1d-14, "a function in a folder")
      call torch_call("special.expit", [x%arg()], [torch_out(found)])
      call expect(all(abs(found - 1/(1 + exp(-a))) < 1d-14), "another folder")
      call torch_call("linalg.norm", [x%arg()], [torch_out(found(1))])
      call expect(abs(found(1) - norm2(a)) < 1d-14, "linalg")
      call torch_call("Tensor.clamp_", [x%arg(), torch_in("min", 2d0)])
      call expect(all(a == [2, 2, 3]), "a method changes the array in place")
      call torch_call("add_", [x%arg(), torch_in(1)])
      call expect(all(a == [3, 3, 4]), "a method without Tensor.")
      call torch_call("fft.fft", [x%arg()], y)
      call expect(y%dtype() == "complex128", "fft")
      call torch_call("gt", [x%arg(), torch_in(3)], y)
      call torch_call("Tensor.where", [x%arg(), y%arg(), torch_in(0d0)], [torch_out(found)])
      call expect(all(found == [0, 0, 4]), "a method has its tensor first, which is the second of the function")
      call torch_call("kl_div", [x%arg(), x%arg()], y)
      call expect(y%rank() == 1, "a constant of C++ as default is 0 in Python: no reduction")
      call torch_call("ops.aten.kl_div", [x%arg(), x%arg()], y)
      call expect(y%rank() == 0, "an operator has its own default")
   end subroutine functions_and_methods

   !> Operators that are no functions of Python
   subroutine only_operators()
      real(real64), target :: a(3)
      type(torch_tensor) :: x, y
      integer :: i, stat
      character(:), allocatable :: errmsg
      character(*), parameter :: names(*) = [character(13) :: "Tensor.real", "Tensor.data", "data", "leaky_relu", &
         "Tensor.conv1d", "slice", "linear"]

      a = 1
      call x%from_array(a)
      do i = 1, size(names)
         call torch_call(trim(names(i)), [x%arg()], y, stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_HOOK, names(i), errmsg, "torch has no function " // trim(names(i)))
      end do
      call torch_call("nn.functional.elu", [x%arg(), torch_in("scale", 2d0)], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "an argument of the operator alone", errmsg, "'scale'")
      call torch_call("nn.functional.elu", [x%arg(), torch_in("alpha", 2d0)], y)
      call expect(y%rank() == 1, "an argument of both")
   end subroutine only_operators

   subroutine arguments()
      real(real32), target :: a(2, 3)
      real(real32) :: found(2, 3), one
      integer(int32) :: whole(2, 3)
      type(torch_tensor) :: x, y
      logical(c_bool), target :: above(2, 3)
      logical :: yes

      a = reshape([3.0, 1.0, 2.0, 6.0, 5.0, 4.0], [2, 3])
      call x%from_array(a)
      call torch_call("sum", [x%arg(), torch_in("dim", 1), torch_in("keepdim", .true.)], y)
      call expect(all(y%shape() == [1, 3]), "axes are those of Python, keywords and truth values")
      call torch_call("sum", [x%arg(), torch_in("dtype", "float64")], y)
      call expect(y%dtype() == "float64", "a type by its name")
      call torch_call("Tensor.to", [x%arg(), torch_in("dtype", "torch.int32")], [torch_out(whole)])
      call expect(all(whole == a), "a type with torch.")
      call torch_call("einsum", [torch_in("ij,ij->"), x%arg(), x%arg()], [torch_out(one)])
      call expect(one == sum(a**2), "a text")
      call torch_call("nn.functional.gelu", [x%arg(), torch_in("approximate", "tanh")], y)
      call expect(y%is_set(), "a text as keyword")
      call torch_call("add", [x%arg(), torch_in(2.0), torch_in("alpha", 10)], [torch_out(found)])
      call expect(all(found == a + 20), "numbers")
      call torch_call("mul", [x%arg(), torch_in((0.0, 1.0))], y)
      call expect(y%dtype() == "complex64", "a complex number")
      call torch_call("allclose", [x%arg(), torch_in(a), torch_in("rtol", 1d-3)], [torch_out(yes)])
      call expect(yes, "a truth value as output")
      above = a > 2
      call torch_call("where", [torch_in(above), x%arg(), torch_in(0.0)], [torch_out(found)])
      call expect(all(found == merge(a, 0.0, above)), "an array of logical")
   end subroutine arguments

   !> An integer array of rank 1 is a tuple where torch takes no tensor
   subroutine shapes_are_tuples()
      real(real32), target :: a(2, 3)
      integer(int32) :: extents(2)
      integer(int64), target :: picked(2), axes(2)
      integer(int64) :: found(3)
      type(torch_tensor) :: x, y

      a = 1
      call x%from_array(a)
      extents = [3, 2]
      call torch_call("zeros", [torch_in(extents), torch_in("dtype", "int16")], y)
      call expect(all(y%shape() == [2, 3]) .and. y%dtype() == "int16", "a shape")
      call torch_call("reshape", [x%arg(), torch_copy([6])], y)
      call expect(all(y%shape() == [6]), "a shape beside a tensor")
      call torch_call("sum", [x%arg(), torch_copy("dim", [0, 1])], y)
      call expect(y%rank() == 0, "axes as keyword")
      axes = [1, 0]
      call torch_call("permute", [x%arg(), torch_in(axes)], y)
      call expect(all(y%shape() == [3, 2]), "axes")
      call torch_call("nn.functional.pad", [x%arg(), torch_copy([1, 1])], y)
      call expect(all(y%shape() == [4, 3]), "a tuple for a function written in Python")
      picked = [2, 0]
      call y%arange(10, 13)
      call torch_call("index_select", [y%arg(), torch_in(0), torch_in(picked)], [torch_out(found(:2))])
      call expect(all(found(:2) == [12, 10]), "a tensor where torch takes one")
   end subroutine shapes_are_tuples

   subroutine results_of_every_kind()
      real(real64), target :: a(4)
      real(real64) :: values(2), low
      integer(int64) :: places(2), count
      character(20) :: text
      type(torch_tensor) :: x, y
      type(torch_results) :: results

      a = [3d0, 9d0, 1d0, 7d0]
      call x%from_array(a)
      call torch_call("topk", [x%arg(), torch_in(2)], [torch_out(values), torch_out(places)])
      call expect(all(values == [9, 7]) .and. all(places == [1, 3]), "two outputs")
      call torch_call("topk", [x%arg(), torch_in(2)], results)
      call expect(results%count() == 2, "two results")
      call results%copy_to(2, places)
      call expect(all(places == [1, 3]), "the second result")
      call results%copy_to("values", values)
      call expect(all(values == [9, 7]), "a result by its name")
      call torch_call("aminmax", [x%arg()], results)
      call results%scalar("min", low)
      call expect(low == 1, "a named result")
      call torch_call("split", [x%arg(), torch_in(1)], results)
      call expect(results%count() == 4, "a tuple of views")
      call torch_call("numel", [x%arg()], [torch_out(count)])
      call expect(count == 4, "an integer")
      call torch_call("Tensor.type", [x%arg()], [torch_out(text)])
      call expect(text == "torch.DoubleTensor", "a text")
      call torch_call("manual_seed", [torch_in(1)])
      call torch_call("set_num_threads", [torch_in(1)])
      call torch_call("get_default_dtype", [torch_arg ::])
      call torch_call("rand", [torch_in(3)], y)
      call expect(all(y%shape() == [3]), "a function without tensors")
   end subroutine results_of_every_kind

   subroutine arrays_are_not_copied()
      real(real64), target :: a(2, 3), b(2, 3)
      real(real64), pointer :: p(:, :)
      type(torch_tensor) :: y

      a = 1
      call torch_call("Tensor.mul_", [torch_out(a), torch_in(3d0)])
      call expect(all(a == 3), "an array changed in place")
      call torch_call("Tensor.detach", [torch_in(a)], y)
      call y%to_array(p)
      call expect(associated(p, a), "a view of an array")
      b = 0
      call y%from_array(b)
      call torch_call("add", [torch_in(a), torch_in(1d0), y%arg("out")])
      call expect(all(b == 4), "out of torch is an array")
   end subroutine arrays_are_not_copied

   subroutine layouts()
      real(real64), target :: a(2, 3)
      real(real64) :: found(2)
      type(torch_tensor) :: x, y

      a = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [2, 3])
      call torch_call("sum", [torch_in(a), torch_in("dim", 0)], [torch_out(found)])
      call expect(all(found == sum(a, dim=2)), "reversed is the default")
      call torch_call("sum", [torch_in(a), torch_in("dim", 1)], [torch_out(found)], layout="same")
      call expect(all(found == sum(a, dim=2)), "same for arrays")
      call x%from_array(torch_in(a), layout="same")
      call torch_call("sum", [x%arg(), torch_in("dim", 1)], y)
      call y%copy_to(torch_out(found))
      call expect(all(found == sum(a, dim=2)), "the layout of the first tensor")
      call torch_call("sum", [x%arg(), torch_in("dim", 0)], y, layout="reversed")
      call y%copy_to(torch_out(found))
      call expect(all(found == sum(a, dim=2)), "a layout that is asked for")
      call torch_call("add", [x%arg(), torch_in(a)], y)
      call expect(all(y%shape() == [2, 3]), "arrays follow the first tensor")
   end subroutine layouts

   !> What has no counterpart in Fortran
   subroutine foreign_results()
      real(real32), target :: a(2, 3)
      real(real32) :: column(2)
      type(torch_tensor) :: x, y
      type(torch_results) :: results
      integer :: stat
      character(:), allocatable :: errmsg

      a = 1
      call x%from_array(a)
      call torch_call("Tensor.to_sparse", [x%arg()], y)
      call y%copy_to(torch_out(a), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_TYPE, "values of a sparse tensor", errmsg, "torch.sparse_coo")
      y = torch_sum(y)
      call y%copy_to(torch_out(a(1, 1)))
      call expect(a(1, 1) == 6, "a sparse tensor can be reduced")
      call torch_call("nn.Linear", [torch_in(3), torch_in(4)], results, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_TYPE, "an object", errmsg)
      call torch_call("Tensor.tolist", [x%arg()], results)
      call results%copy_to(3, torch_out(column), cast=.true.)
      call expect(results%count() == 3 .and. all(column == 1), "lists in a list")
   end subroutine foreign_results

   subroutine refuses()
      real(real32), target :: a(2, 3)
      real(real32) :: found(3, 2)
      type(torch_tensor) :: x, y, unset
      type(torch_results) :: results
      integer :: stat
      character(:), allocatable :: errmsg

      a = 1
      call x%from_array(a)
      call y%ones([4])
      call torch_call("sofmax", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "unknown function", errmsg, "torch has no function sofmax")
      call expect_text(errmsg, "did you mean 'softmax'?", "the nearest function")
      call expect(all(y%shape() == [4]), "a tensor keeps its contents on failure")
      call torch_call("nn.functional.sofmax", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "did you mean 'softmax'?", "the nearest function in a folder")
      call torch_call("clam_", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "did you mean 'clamp_'?", "the nearest method")
      call torch_call("no.such.folder", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "unknown folder", errmsg)
      call torch_call("exp", [unset%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "an argument without contents", errmsg)
      unset = x + y
      call torch_call("exp", [unset%arg("input")], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "an argument that carries a failure", errmsg)
      call expect_text(errmsg, "must match the size of tensor b", "the text that it carries")
      call unset%free()
      call torch_call("pi", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "no function", errmsg)
      call torch_call("", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "no name", errmsg)
      call torch_call("is_tensor", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_TYPE, "a truth value is no tensor", errmsg)
      call expect_text(errmsg, "a tensor is expected", "text for a truth value")
      call torch_call("typename", [x%arg()], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_TYPE, "a text is no tensor", errmsg)
      call torch_call("set_num_threads", [torch_in(1)], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "nothing is no tensor", errmsg)
      call torch_call("topk", [x%arg(), torch_in(1)], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "two results for a tensor", errmsg)
      call torch_call("exp", [x%arg()], [torch_out(a), torch_out(found)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "one result for two outputs", errmsg)
      call torch_call("exp", [x%arg()], [torch_out(found)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "an output of another shape", errmsg)
      call torch_call("exp", [unset%arg(stat=stat)], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a tensor without contents", errmsg)
      call torch_call("exp", [x%arg()], y, layout="rows", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown layout for a tensor", errmsg)
      call torch_call("exp", [x%arg()], [torch_out(a)], layout="rows", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown layout for outputs", errmsg)
      call torch_call("exp", [x%arg()], results, layout="rows", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown layout for results", errmsg)
      call torch_call("zeros", [torch_copy([2]), torch_in("dtype", "int23")], y, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown type", errmsg, "did you mean 'int32'?")
   end subroutine refuses

   !> What torch refuses is said in its own words, with what it was called with
   subroutine texts_of_torch()
      real(real32), target :: a(2, 3), b(4, 3)
      type(torch_tensor) :: x, y, z
      integer :: stat
      character(:), allocatable :: errmsg

      a = 1
      b = 1
      call x%from_array(a)
      call y%from_array(b)
      call torch_call("add", [x%arg(), y%arg()], z, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "shapes that do not fit", errmsg)
      call expect_text(errmsg, "add of torch: RuntimeError: The size of tensor a (2) must match", "the text of torch")
      call expect_text(errmsg, "argument 1: float32 (3, 2), Fortran (2, 3)", "both shapes of the first argument")
      call expect_text(errmsg, "argument 2: float32 (3, 4), Fortran (4, 3)", "both shapes of the second argument")
      call expect(index(errmsg, "RuntimeError") == index(errmsg, "RuntimeError", back=.true.), "said once")
      call torch_call("softmax", [x%arg(), torch_in("dmi", 1)], z, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "an unknown keyword", errmsg, "dmi: 1")
      call torch_call("add", [x%arg(), torch_in("text")], z, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "TypeError: add(): argument 'other'", "TypeError of torch")
      call torch_call("reshape", [x%arg(), torch_copy([4, 2])], z, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "shape '[4, 2]' is invalid for input of size 6", "the failure with a tuple")
      call torch_call("softmax", [x%arg(), torch_in("dim", 5)], z, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "IndexError: Dimension out of range", "IndexError of torch")
      call torch_call("nn.functional.binary_cross_entropy", [x%arg(), y%arg()], z, stat=stat, errmsg=errmsg)
      call expect_text(errmsg, "torch/nn/functional.py", "where it came from")
      call expect(.not. z%is_set(), "nothing came of it")
   end subroutine texts_of_torch

   !> A tensor is the same one in Fortran and in Python, and so is the state of its optimizer
   subroutine trained_further_in_python(layout)
      character(*), intent(in) :: layout

      real(real64), target :: w(3, 2), v(3, 2)
      real(real64) :: first(3, 2), found(3, 2)
      type(torch_optimizer) :: optimizer, other
      type(torch_scheduler) :: scheduler
      type(torch_tensor) :: x, y, gradient

      first = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [3, 2])
      w = first
      v = w
      call x%from_array(torch_in(w), layout=layout)
      call y%from_array(torch_in(v), layout=layout)
      call x%set_requires_grad()
      call y%set_requires_grad()
      call optimizer%create("Adam", [x], [torch_in("lr", 0.1d0)])
      call other%create("Adam", [y], [torch_in("lr", 0.1d0)])
      call steps(optimizer, x)
      call steps(other, y)
      call expect(all(w == v) .and. all(w < first), layout // ": both have learnt the same")
      call scheduler%create("ConstantLR", optimizer, [torch_in("factor", 1d0)])
      call steps(optimizer, x)
      call steps(other, y)
      call expect(all(w == v), layout // ": with a scheduler the optimizer goes on from its state")
      call torch_call("autograd.grad", [loss_of(x), x%arg()], gradient)
      call gradient%copy_to(torch_out(found))
      call expect(all(found == 2*w), layout // ": Python follows the graph that Fortran made")
   end subroutine trained_further_in_python

   function loss_of(x) result(loss)
      type(torch_tensor), intent(in) :: x
      type(torch_arg) :: loss

      type(torch_tensor) :: sum

      sum = torch_sum(x**2)
      loss = sum%arg()
   end function loss_of

   subroutine steps(optimizer, x)
      type(torch_optimizer), intent(in) :: optimizer
      type(torch_tensor), intent(in) :: x

      type(torch_tensor) :: loss
      integer :: i

      do i = 1, 3
         call optimizer%zero_grad()
         loss = torch_sum(x**2)
         call loss%backward()
         call optimizer%step()
      end do
   end subroutine steps

   !> What a script has set for functions of torch is its own
   subroutine modes_of_python()
      type(torch_pymodule) :: model
      type(torch_tensor) :: x

      call model%load(script("default_device.py"))
      call x%zeros([2, 3])
      call expect(x%rank() == 2 .and. x%device() == "cpu", "the default device of a script")
   end subroutine modes_of_python
end program test_torch_call
