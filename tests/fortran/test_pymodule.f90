! SPDX-License-Identifier: MIT
!> A torch_pymodule loads scripts with options and configuration, and calls all of their functions.
program test_pymodule
   use, intrinsic :: iso_c_binding, only : c_loc
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   call forwards()
   call is_configured()
   call trains()
   call calls_any_function()
   call takes_empty_argument_lists()
   call has_functions_and_a_backend()
   call saves_and_restores()
   call reloads()
   call lives_beside_others()
   call takes_options()
   call reports_failures()
   call finish()

contains

   !> State of the script
   function state(model, key) result(value)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: key
      integer :: value

      type(torch_results) :: results

      call model%call("get", [torch_in(key)], results)
      call results%scalar(1, value)
   end function state

   subroutine forwards()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: output
      real(real64) :: x(3), y(3)
      real(real64), pointer :: p(:)

      call model%load(script("counter.py"))
      x = [1, 2, 3]
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == x + 1), "forward into outputs")
      call model%forward([torch_in(x), torch_in("scale", 10)], [torch_out(y)])
      call expect(all(y == 10*x + 2), "forward with a keyword argument")
      call model%forward([torch_in(x)], results)
      call results%to_array(1, p)
      call expect(all(p == x + 3), "forward with results")
      call model%forward([torch_in(x)])
      call expect(state(model, "count") == 4, "forward without outputs")
      call list%create()
      call list%add_array(x)
      call list%add_scalar(2)
      call model%forward(list, output)
      call output%to_array(p)
      call expect(all(p == 2*x + 5), "forward with a list as separate arguments")
   end subroutine forwards

   subroutine is_configured()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      character(:), allocatable :: text
      real(real32) :: weights(4), sum
      logical :: flag

      weights = 2
      call model%load(script("counter.py"), config=[torch_in("step", 5), torch_in("label", "north"), &
         torch_in("weights", weights), torch_in("flag", .true.)])
      call expect(state(model, "step") == 5, "configuration: integer")
      call model%call("get", [torch_in("label")], results)
      call results%scalar(1, text)
      call expect(text == "north", "configuration: text")
      call model%call("get", [torch_in("weights")], results)
      call results%scalar(1, sum)
      call expect(sum == 8, "configuration: array")
      call model%call("get", [torch_in("flag")], results)
      call results%scalar(1, flag)
      call expect(flag, "configuration: logical")
   end subroutine is_configured

   subroutine trains()
      type(torch_pymodule) :: model
      type(torch_tensor_wrap) :: list
      type(torch_tensor) :: target
      real(real32) :: x(4), t(4), loss
      real(real64) :: precise
      logical :: done

      call model%load(script("counter.py"))
      x = 1
      t = 3
      done = model%train([torch_in(x)], [torch_in(t)], loss)
      call expect(.not. done .and. loss == 2, "train: real32")
      done = model%train([torch_in(x)], [torch_in(t)], precise)
      call expect(.not. done .and. precise == 2, "train: real64")
      done = model%train([torch_in(x)], [torch_in("target", t)], loss)
      call expect(done, "train: completed")
      call model%train_step([torch_in(x)], [torch_in(t)], loss)
      done = .false.
      call model%train_step([torch_in(x)], [torch_in(t)], precise, done)
      call expect(done .and. state(model, "count") == 5, "train_step")
      call list%create()
      call list%add_array(x)
      call target%from_array(t)
      call model%train_step(list, target, loss)
      call model%train_step(list, target, precise, done)
      call expect(state(model, "count") == 7 .and. precise == 2, "train_step with a list")
      do while (.not. model%train([torch_in(x)], [torch_in(t)], loss))
      end do
   end subroutine trains

   subroutine calls_any_function()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      real(real64) :: x(3), low(1), high(2), up(3), down(3)

      call model%load(script("counter.py"))
      x = [1, 2, 3]
      call model%call("split", [torch_in(x)], [torch_out("high", high), torch_out("low", low)])
      call expect(all(high == [2, 3]) .and. low(1) == 1, "named outputs of a dict, in any order")
      call model%call("both", [torch_in(x)], [torch_out(up), torch_out(down)])
      call expect(all(up == x + 1) .and. all(down == x - 1), "two outputs of a tuple")
      call model%call("both", inputs=[torch_in("x", x)], outputs=[torch_out(up), torch_out(down)])
      call model%call("write", [torch_in(x)], [torch_out(up)])
      call expect(all(up == 2*x), "a function with a parameter out writes in place")
      call model%call("split", [torch_in(x)], results)
      call expect(results%count() == 2, "results of any function")
      call model%call("backwards", [torch_in(x)], [torch_out(up(3:1:-1))])
      call expect(all(up == x), "negative strides on both sides")
      call model%call("both", [torch_in(x(3:1:-1))], [torch_out(up), torch_out(down)])
      call expect(all(up == [4, 3, 2]), "a NumPy script takes negative strides")
   end subroutine calls_any_function

   !> gfortran 12 makes an empty constructor an absent argument
   subroutine takes_empty_argument_lists()
      type(torch_pymodule) :: model
      real(real64) :: y(0)
      integer :: stat

      call model%load(script("results.py"), config=[torch_arg ::])
      call model%call("nothing", [torch_arg ::], [torch_arg ::], stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "empty inputs and outputs")
      call model%call("nothing", [torch_arg ::], stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "empty inputs")
      call model%call("nothing", stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "absent inputs")
      call model%call("single", outputs=[torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "outputs without inputs")
   end subroutine takes_empty_argument_lists

   subroutine has_functions_and_a_backend()
      type(torch_pymodule) :: model

      call model%load(script("counter.py"))
      call expect(model%has("split"), "has a function")
      call expect(.not. model%has("spilt"), "has not another")
      call expect(model%backend() == "script", "a script")
   end subroutine has_functions_and_a_backend

   subroutine saves_and_restores()
      type(torch_pymodule) :: model
      real(real64) :: x(2)
      integer :: unit, iostat

      x = 0
      call model%load(script("counter.py"))
      call model%forward([torch_in(x)])
      call model%save("counter.json  ")
      call model%forward([torch_in(x)])
      call expect(state(model, "count") == 2, "before restore")
      call model%restore("counter.json")
      call expect(state(model, "count") == 1, "after restore")
      open (newunit=unit, file="counter.json", iostat=iostat)
      if (iostat == 0) close (unit, status="delete")
   end subroutine saves_and_restores

   subroutine reloads()
      type(torch_pymodule) :: model
      real(real64) :: x(2)

      x = 0
      call model%load(script("counter.py"), config=[torch_in("step", 3)])
      call model%forward([torch_in(x)])
      call expect(state(model, "count") == 3, "before reload")
      call model%reload()
      call expect(state(model, "count") == 0 .and. state(model, "step") == 3, "reload: state new, configuration kept")
   end subroutine reloads

   subroutine lives_beside_others()
      type(torch_pymodule) :: first, second, other
      real(real64) :: x(2)

      x = 0
      call first%load(script("counter.py"))
      call second%load(script("counter.py"), config=[torch_in("step", 10)])
      call other%load(script("look.py"))
      call first%forward([torch_in(x)])
      call second%forward([torch_in(x)])
      call other%forward([torch_in(x)])
      call expect(state(first, "count") == 1 .and. state(second, "count") == 10, "one script twice, two states")
   end subroutine lives_beside_others

   subroutine takes_options()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      real(real64), target :: x(3, 2)
      real(real32) :: y(3, 2)
      integer :: stat

      x = 1
      call model%load(script("look.py"))
      call looks_like("no options", model, x, [3, 2], "float64", is_shared=.true.)
      call model%load(script("look.py"), layout="same")
      call looks_like("layout=", model, x, [2, 3], "float64", is_shared=.true.)
      call model%load(script("look.py"), dtype="float32")
      call looks_like("dtype=", model, x, [3, 2], "float32", is_shared=.false.)
      call model%load(script("look.py"), inputs="copy")
      call looks_like("inputs=", model, x, [3, 2], "float64", is_shared=.false.)
      call model%load(script("look.py"), layout="same", mode="safe", dtype="float32", device="cpu", &
         inputs="copy", cast=.true.)
      call looks_like("all options", model, x, [2, 3], "float32", is_shared=.false.)
      call model%load(script("look.py"))
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "outputs are not narrowed")
      call model%load(script("look.py"), cast=.true.)
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
      call expect(stat == 0 .and. all(y == 2), "outputs are narrowed with cast=")
      call model%load(script("look.py"), layout="sideways", stat=stat, errmsg=errmsg)
      call is_refused("layout", "reversed", stat, errmsg)
      call model%load(script("look.py"), mode="careful", stat=stat, errmsg=errmsg)
      call is_refused("mode", "checked", stat, errmsg)
      call model%load(script("look.py"), dtype="float31", stat=stat, errmsg=errmsg)
      call is_refused("dtype", "float32", stat, errmsg)
      call model%load(script("look.py"), inputs="borrow", stat=stat, errmsg=errmsg)
      call is_refused("inputs", "share", stat, errmsg)
      call model%load(script("look.py"), device="abacus", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "unknown device", errmsg, "abacus")
   end subroutine takes_options

   !> A value of an option is answered with one that is right.
   subroutine is_refused(option, named, stat, errmsg)
      character(*), intent(in) :: option, named, errmsg
      integer, intent(in) :: stat

      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "unknown " // option)
      call expect_text(errmsg, named, "unknown " // option // ": the message")
   end subroutine is_refused

   !> What the script sees of an array: extents, the last axis of Python first; type; whether it is the memory itself
   subroutine looks_like(what, model, x, extents, dtype, is_shared)
      character(*), intent(in) :: what, dtype
      type(torch_pymodule), intent(in) :: model
      real(real64), intent(in), target, contiguous :: x(:, :)
      integer, intent(in) :: extents(:)
      logical, intent(in) :: is_shared

      type(torch_results) :: results
      character(:), allocatable :: text
      integer(int64), pointer :: found(:)
      integer(int64) :: address

      call model%call("look", [torch_in(x)], results)
      call results%to_array("shape", found)
      call expect(all(found == extents), what // ": extents")
      call results%scalar("dtype", text)
      call expect(text == dtype, what // ": type is " // text)
      call results%scalar("address", address)
      call expect((address == transfer(c_loc(x), address)) .eqv. is_shared, what // ": memory")
   end subroutine looks_like

   subroutine reports_failures()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      real(real64) :: x(2), y(3)
      real(real32) :: loss
      logical :: done
      integer :: stat

      x = 0
      y = -1
      loss = -1
      call model%load(script("no_such_file.py"), stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "no such file")
      call model%load(script("counter.py"))
      call model%call("fail", [torch_in("boom")], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "exception", errmsg, "ValueError: boom")
      call expect_text(errmsg, "counter.py", "exception: file")
      call model%call("spilt", [torch_in(x)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "no such function")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "output of another shape")
      call expect(all(y == -1), "output of another shape: untouched")
      call model%call("both", [torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "one output for two results")
      call model%call("split", [torch_in(x)], [torch_out(y), torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "outputs of a dict without names")
      done = model%train([torch_in(x)], [torch_in(y)], loss, stat=stat)
      call expect(stat /= 0 .and. .not. done .and. loss == -1, "train: loss untouched on failure")
      done = model%has("split", stat=stat)
      call expect(done .and. stat == 0, "the next call works")
   end subroutine reports_failures
end program test_pymodule
