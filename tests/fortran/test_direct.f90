! SPDX-License-Identifier: MIT
!> Saved models on the direct path, in a program without Python.
program test_direct
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, is_mapped, threads_of_process
   use ftn_pytorch
   implicit none

   call random_init(repeatable=.true., image_distinct=.true.)
   call keeps_the_number_of_threads()
   call layouts()
   call arguments_and_outputs()
   call results_of_all_kinds()
   call lists()
   call types()
   call three_types("blend")
   call three_types("blend_traced")
   call reallocated_inputs()
   call other_methods()
   call state_and_gradients()
   call refuses()
   call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call finish()

contains

   !> Before anything brings torch into the process
   subroutine keeps_the_number_of_threads()
      type(torch_module) :: model
      real(real64), allocatable :: x(:), y(:)

      call ftn_pytorch_set_threads(1)
      call load(model, "weighted")
      allocate (x(400000), y(400000))
      x = 1
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(threads_of_process() == 1, "a large call has made no threads")
   end subroutine keeps_the_number_of_threads

   subroutine load(model, name, layout, dtype, inputs, mode, cast)
      type(torch_module), intent(inout) :: model
      character(*), intent(in) :: name
      character(*), intent(in), optional :: layout, dtype, inputs, mode
      logical, intent(in), optional :: cast

      call model%load("direct_" // name // ".pt", backend="direct", layout=layout, dtype=dtype, inputs=inputs, &
         mode=mode, cast=cast)
      call expect(model%backend() == "direct", "backend of " // name)
   end subroutine load

   subroutine layouts()
      type(torch_module) :: reversed, same
      type(torch_results) :: results
      real(real64) :: x(2, 3), y(2, 3), t(3, 2)
      real(real64), pointer :: p(:, :)
      integer :: i, j

      x = reshape([(real(i, real64), i=1, 6)], [2, 3])
      call load(reversed, "weighted")
      call load(same, "weighted", layout="same")
      call reversed%forward([torch_in(x)], [torch_out(y)])
      call expect(all([((y(i, j) == i*x(i, j), i=1, 2), j=1, 3)]), "reversed: the first axis is the model's last")
      call same%forward([torch_in(x)], [torch_out(y)])
      call expect(all([((y(i, j) == j*x(i, j), i=1, 2), j=1, 3)]), "same: the last axis is the model's last")
      call same%forward([torch_in(x)], results)
      call results%to_array(1, p)
      call expect(all(shape(p) == [2, 3]), "same: shape of results")
      call expect(all(p == y), "same: results")
      call reversed%forward([torch_in(x(:, 3:1:-2))], [torch_out(y(:, 1:2))], stat=i)
      call expect_status(i, FTN_PYTORCH_ERR_STRIDE, "negative stride")
      call reversed%forward([torch_copy(x(:, 3:1:-2))], [torch_out(y(:, 1:2))])
      call expect(all(y(:, 1) == [x(1, 3), 2*x(2, 3)]) .and. all(y(:, 2) == [x(1, 1), 2*x(2, 1)]), "copy of a section")
      y = 0
      call reversed%forward([torch_in(x(:, 1:3:2))], [torch_out(y(2:1:-1, 3:1:-2))])
      call expect(all(y(2, [3, 1]) == x(1, [1, 3])) .and. all(y(1, [3, 1]) == 2*x(2, [1, 3])), "strides, backwards out")
      call load(same, "two", layout="same")
      call same%call("turned", [torch_in(x)], [torch_out(t)])
      call expect(all(t == transpose(x)), "same: transposed result")
   end subroutine layouts

   subroutine arguments_and_outputs()
      type(torch_module) :: model
      real(real32) :: a(3), b(3), plus(3), minus(3)
      character(:), allocatable :: errmsg
      integer :: stat

      a = [1.0, 2.0, 3.0]
      b = [10.0, 20.0, 30.0]
      call load(model, "two")
      call model%forward([torch_in(a), torch_in(b)], [torch_out(plus), torch_out(minus)])
      call expect(all(plus == a + b) .and. all(minus == a - b), "two inputs, two outputs")
      call model%forward([torch_in(a), torch_in(b), torch_in(2d0)], [torch_out(plus), torch_out(minus)])
      call expect(all(plus == a + 2*b), "a scalar")
      call model%forward([torch_in(a), torch_in("scale", 3), torch_in("b", b)], [torch_out(plus), torch_out(minus)])
      call expect(all(plus == a + 3*b), "named inputs, an integer as a float")
      call model%call("named", [torch_in(a)], [torch_out("sum", minus(1)), torch_out("double", plus)])
      call expect(all(plus == 2*a) .and. minus(1) == 6, "named outputs of a dictionary")
      call model%call("adds", [torch_out(a)])
      call expect(all(a == [2.0, 3.0, 4.0]), "changed in place where torch_out allows it")
      call model%call("adds", [torch_in(a)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "changed in place without torch_out", errmsg)
      call expect_text(errmsg, "torch_out", "changed in place: what to do")
      call model%forward([torch_in(b), torch_in(b)], [torch_out(b), torch_out(minus)])
      call expect(all(b == [20.0, 40.0, 60.0]) .and. all(minus == 0), "an output that is an input")
      call load(model, "entries")
      call model%forward([torch_in("b", a), torch_in("a", plus)], [torch_out(minus)])
      call expect(all(minus == plus - a), "named inputs are the entries of a dictionary")
      call model%forward([torch_in(a)], [torch_out(minus)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "a dictionary without names", errmsg)
   end subroutine arguments_and_outputs

   subroutine results_of_all_kinds()
      type(torch_module) :: model
      type(torch_results) :: results
      type(torch_tensor) :: tensor
      real(real64) :: x(4), low, high
      real(real64), pointer :: p(:)
      real(real32) :: h(4)
      complex(real64) :: z(2), w(2)
      integer(int64) :: n
      real(real64) :: half
      logical :: positive
      character(:), allocatable :: word

      x = [1, 2, 3, 4]
      call load(model, "counted")
      call model%forward([torch_in(x)], [torch_out(x), torch_out(n)])  ! the first calls look for inputs that are kept
      call expect(all(x == [2, 4, 6, 8]) .and. n == 4, "a tensor beside a number")

      x = [3d0, -1d0, 7d0, 2d0]
      call load(model, "range")
      call model%forward([torch_in(x)], [torch_out(low), torch_out(high)])
      call expect(low == -1 .and. high == 7, "a named tuple by position")
      call model%forward([torch_in(x)], [torch_out("high", high), torch_out("low", low)])
      call expect(low == -1 .and. high == 7, "a named tuple by name")
      call load(model, "two")
      call model%call("named", [torch_in(x)], results)
      call expect(results%count() == 2 .and. results%name(2) == "sum", "names of results")
      call results%to_array("double", p)
      call expect(all(p == 2*x), "a pointer into results")
      call results%copy_to("sum", low)
      call expect(low == 11, "a copy of a result")
      call results%get("double", tensor)
      call results%free()
      call tensor%to_array(p)
      call expect(all(p == 2*x), "a tensor outlives its results")
      call model%call("turned", [tensor%arg()], results)
      call expect(results%count() == 1, "a result as argument")
      call model%call("scalars", [torch_in(5), torch_in("so")], results)
      call results%scalar(1, n)
      call results%scalar(2, half)
      call results%scalar(3, positive)
      call results%scalar(4, word)
      call expect(n == 6 .and. half == 2.5d0 .and. positive .and. word == "so!", "numbers, a logical and a text")
      call model%call("half", [torch_in(x)], [torch_out(h)])
      call expect(all(h == real(x, real32)), "half precision widens")
      z = [(1d0, 2d0), (3d0, 4d0)]
      call model%call("conjugate", [torch_in(z)], [torch_out(w)])
      call expect(all(w == conjg(z)), "a pending conjugate is resolved")
      call model%call("nothing", [torch_in(x)])
   end subroutine results_of_all_kinds

   subroutine lists()
      type(torch_module) :: model
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      real(real32) :: x(2, 3)
      real(real32), pointer :: p(:, :)

      x = reshape([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])
      call load(model, "weighted")
      call list%create()
      call list%add_array(x)
      call model%forward(list, output)
      call output%to_array(p)
      call expect(all(p(1, :) == x(1, :)) .and. all(p(2, :) == 2*x(2, :)), "forward with a list")
      call list%clear()
      call list%add_tensor(output)
      call model%forward(list, output, torch_use_inference_mode)
      call output%to_array(p)
      call expect(all(p(2, :) == 4*x(2, :)), "its tensor in a list again")
   end subroutine lists

   subroutine types()
      type(torch_module) :: model
      integer(int64) :: i(3), signed(3)
      integer(int32) :: short(3)
      logical(c_bool) :: flag(3)
      real(real64) :: x(3), y(3)
      real(real32) :: single(3)
      character(:), allocatable :: errmsg
      integer :: stat

      i = [1_int64, 2_int64, 3_int64]
      flag = [.true._c_bool, .false._c_bool, .true._c_bool]
      call load(model, "two")
      call model%call("chosen", [torch_in(i), torch_in(flag)], [torch_out(signed)])
      call expect(all(signed == [1, -2, 3]), "integers and logicals")
      call model%call("chosen", [torch_in(i), torch_in(flag)], [torch_out(short)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "int64 into int32", errmsg)
      call load(model, "two", cast=.true.)
      call model%call("chosen", [torch_in(i), torch_in(flag)], [torch_out(short)])
      call expect(all(short == [1, -2, 3]), "int64 into int32 with cast")
      x = [1/3d0, 2/3d0, 1d0]
      call load(model, "weighted", dtype="float32")
      call model%forward([torch_in(x)], [torch_out(single)])
      call expect(all(single == real(x, real32)*[1.0, 2.0, 3.0]), "dtype=float32")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == single), "and its result widened")
      call load(model, "weighted")
      call model%forward([torch_in(x)], [torch_out(single)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "float64 into real32", errmsg, "cast=.true.")
   end subroutine types

   subroutine three_types(name)
      character(*), intent(in) :: name

      type(torch_module) :: model
      real(real32) :: x(3, 6), blended(3, 6), picked(3, 6)
      integer(int64) :: index(6)
      logical(c_bool) :: mask(3, 6)
      integer :: n

      call load(model, name)
      index = [4, 0, 2, 2, 1, 3]
      do n = 5, 6
         call random_number(x)
         mask = x > 0.5
         blended = 0
         picked = 0
         call model%forward([torch_in(x(:, :n)), torch_in(index(:n)), torch_in("mask", mask(:, :n))], &
            [torch_out(blended(:, :n)), torch_out(picked(:, :n))])
         call expect(all(blended(:, :n) == merge(2*x(:, :n), -x(:, :n), logical(mask(:, :n)))), name // ": output 1")
         call expect(all(picked(:, :n) == x(:, index(:n) + 1)), name // ": output 2")
      end do
      call model%forward([torch_in(x(::2, :)), torch_in(index), torch_in(mask(::2, :))], &
         [torch_out(blended(::2, :)), torch_out(picked(::2, :))])
      call expect(all(blended(::2, :) == merge(2*x(::2, :), -x(::2, :), logical(mask(::2, :)))), name // ": strided")
   end subroutine three_types

   subroutine reallocated_inputs()
      type(torch_module) :: model
      real(real64), allocatable :: x(:), y(:)
      logical :: right
      integer :: step, n

      call load(model, "weighted")
      right = .true.
      do step = 1, 300
         n = 1 + mod(7*step, 5)
         if (allocated(x)) deallocate (x, y)
         allocate (x(n), y(n))
         x = step
         call model%forward([torch_in(x)], [torch_out(y)])
         right = right .and. y(n) == real(n*step, real64)
      end do
      call expect(right, "inputs of another size at the same address")
   end subroutine reallocated_inputs

   subroutine other_methods()
      type(torch_module) :: model

      call load(model, "two")
      call expect(model%has("named") .and. model%has("forward") .and. model%has("ftn_pytorch_forward"), "has")
      call expect(model%has("ftn_pytorch_train") .and. .not. model%has("missing"), "has not")
   end subroutine other_methods

   subroutine state_and_gradients()
      type(torch_module) :: model
      real(real32) :: x(2), y(2)
      integer :: call_number

      x = [1.0, 2.0]
      call load(model, "counter")
      do call_number = 1, 5
         call model%forward([torch_in(x)], [torch_out(y)], flags=merge(torch_use_inference_mode, 0, call_number > 2))
      end do
      call expect(all(y == 5), "a model that counts its calls")
      call load(model, "counter", inputs="copy")
      call model%call("keep", [torch_in(x)])
      x = 0
      call model%call("kept", outputs=[torch_out(y)])
      call expect(all(y == [1.0, 2.0]), "inputs=copy: what a model keeps is its own")
      x = [1.0, 2.0]
      call load(model, "force")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == -2*x), "a model that differentiates")
   end subroutine state_and_gradients

   subroutine refuses()
      type(torch_module) :: model
      real(real32) :: x(3), y(3), z(2)
      character(:), allocatable :: errmsg
      integer :: stat
      logical :: was_run

      call expect_load("direct_missing.pt", FTN_PYTORCH_ERR_FILE, "does not exist")
      call expect_load("direct_truncated.pt", FTN_PYTORCH_ERR_FORMAT, "TorchScript")
      call expect_load("direct_foreign.pt", FTN_PYTORCH_ERR_FORMAT, "TorchScript")
      call expect_load("direct_weights.pt", FTN_PYTORCH_ERR_FORMAT, "TorchScript")
      call expect_load("direct_damaged.pt", FTN_PYTORCH_ERR_FORMAT, "torch::jit::load")
      call expect_load("direct_later.pt", FTN_PYTORCH_ERR_FORMAT, "version 999")
      call expect_load("direct_attack.pt", FTN_PYTORCH_ERR_FORMAT, "torch::jit::load")
      inquire (file="direct_attack_was_run/.", exist=was_run)
      call expect(.not. was_run, "code in a pickle is not run")
      call expect_option("layout", FTN_PYTORCH_ERR_ARGUMENT, "reversed, same")
      call expect_option("device", FTN_PYTORCH_ERR_DEVICE, "no device that torch knows")

      x = 1
      y = x
      call expect_call([torch_in(x)], [torch_out(y), torch_out(y)], FTN_PYTORCH_ERR_SIGNATURE, "(a, b, scale=1")
      call expect_call([torch_in(x), torch_in(x), torch_in("depth", 1)], [torch_out(y)], &
         FTN_PYTORCH_ERR_SIGNATURE, "depth")
      call expect_call([torch_in(x), torch_in(x), torch_in("a", x)], [torch_out(y)], &
         FTN_PYTORCH_ERR_SIGNATURE, "multiple")
      call expect_call([torch_in(x), torch_in(1.0)], [torch_out(y)], FTN_PYTORCH_ERR_PYTHON, "'b'")
      call expect_call([torch_in(x), torch_in(x)], [torch_out(y)], FTN_PYTORCH_ERR_RESULT_COUNT, "2 results")
      call expect_call([torch_in(x), torch_in(x)], [torch_out(y), torch_out(z)], FTN_PYTORCH_ERR_SHAPE, "(3,)")
      call expect_method("fails", [torch_in(x)], FTN_PYTORCH_ERR_PYTHON, "cannot be multiplied")
      call expect_method("named", [torch_in(x)], FTN_PYTORCH_ERR_RESULT_NAME, "torch_out(""name"", x)")
      call expect_method("nested", [torch_in(x)], FTN_PYTORCH_ERR_RESULT_TYPE, "nested")
      call expect_method("missing", [torch_in(x)], FTN_PYTORCH_ERR_HOOK, "forward")
      call expect(all(y == x), "on failure outputs keep their values")
      call load(model, "two")
      call model%checkpoint("no_such_folder", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "checkpoint", errmsg, "backend=""python""")
   end subroutine refuses

   subroutine expect_load(file, status, part)
      character(*), intent(in) :: file, part
      integer, intent(in) :: status

      type(torch_module) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(file, backend="direct", stat=stat, errmsg=errmsg)
      call expect_status(stat, status, file, errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, part, file // ": reason")
   end subroutine expect_load

   subroutine expect_option(name, status, part)
      character(*), intent(in) :: name, part
      integer, intent(in) :: status

      type(torch_module) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      if (name == "layout") then
         call model%load("direct_two.pt", backend="direct", layout="sideways", stat=stat, errmsg=errmsg)
      else
         call model%load("direct_two.pt", backend="direct", device="abacus", stat=stat, errmsg=errmsg)
      end if
      call expect_status(stat, status, "option " // name, errmsg, part)
   end subroutine expect_option

   subroutine expect_call(inputs, outputs, status, part)
      type(torch_arg), target :: inputs(:), outputs(:)
      integer, intent(in) :: status
      character(*), intent(in) :: part

      type(torch_module) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call load(model, "two")
      call model%forward(inputs, outputs, stat=stat, errmsg=errmsg)
      call expect_status(stat, status, part, errmsg, part)
   end subroutine expect_call

   subroutine expect_method(name, inputs, status, part)
      character(*), intent(in) :: name, part
      type(torch_arg), target :: inputs(:)
      integer, intent(in) :: status

      type(torch_module) :: model
      character(:), allocatable :: errmsg
      real(real32) :: y(3)
      integer :: stat

      call load(model, "two")
      call model%call(name, inputs, [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, status, name, errmsg, part)
      if (status == FTN_PYTORCH_ERR_PYTHON) call expect(index(errmsg, "frame #") == 0, name // ": no frames of C++")
   end subroutine expect_method
end program test_direct
