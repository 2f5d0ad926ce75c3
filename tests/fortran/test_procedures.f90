! SPDX-License-Identifier: MIT
!> Procedures of the program as functions of torch.
module procedures_of_the_test
   use, intrinsic :: ieee_arithmetic, only : ieee_get_halting_mode, ieee_invalid, ieee_support_halting
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   implicit none
   public

   logical :: halts_in_the_procedure = .false.
   character(8) :: way = ""
   type(torch_pymodule) :: model

contains

   subroutine cube(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: x(:, :), y(:, :)

      call inputs(1)%to_array(x, stat)
      if (stat /= FTN_PYTORCH_OK) return
      call outputs(1)%empty(shape(x), dtype="float64")
      call outputs(1)%to_array(y)
      y = x**3
      if (ieee_support_halting(ieee_invalid)) call ieee_get_halting_mode(ieee_invalid, halts_in_the_procedure)
   end subroutine cube

   subroutine cube_adjoint(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: x(:, :), gradient(:, :), y(:, :)

      call inputs(1)%to_array(x)
      call inputs(2)%to_array(gradient)
      call outputs(1)%empty(shape(x), dtype="float64")
      call outputs(1)%to_array(y)
      y = 3*x**2*gradient
      stat = 0
   end subroutine cube_adjoint

   !> Two results, by operations of torch
   subroutine split(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      outputs(1) = torch_clone(torch_slice(inputs(1), 2, last=1))
      outputs(2) = torch_clone(torch_slice(inputs(1), 2, first=2))
      stat = 0
   end subroutine split

   !> An output in memory of the procedure, which ends with it: as it is, by another name, as a view, and as a copy
   subroutine local_memory(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: x(:, :)
      real(real64), target :: y(3, 2)
      type(torch_tensor) :: named

      call inputs(1)%to_array(x, stat)
      y = 2*x
      select case (way)
      case ("array")
         call outputs(1)%from_array(y)
      case ("name")
         call named%from_array(y)
         outputs(1) = named
      case ("view")
         call named%from_array(y)
         outputs(1) = torch_reshape(named, [3, 2])
      case ("copy")
         call outputs(1)%from_array(torch_copy(y))
      case ("clone")
         call named%from_array(y)
         outputs(1) = torch_clone(named)
      case ("input")
         outputs(1) = torch_reshape(inputs(1), [3, 2])
      end select
   end subroutine local_memory

   subroutine failing(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      outputs = inputs
      stat = 7
   end subroutine failing

   subroutine idle(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      if (size(inputs) + size(outputs) < 2) stat = 1
   end subroutine idle

   subroutine vandal(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      real(real64), pointer :: x(:, :)

      outputs(1) = torch_clone(inputs(1))
      call inputs(1)%to_array(x, stat)
      x = 0
   end subroutine vandal

   !> An operation that fails, and a library call that says so
   subroutine mistaken(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      outputs(1) = torch_sum(inputs(1), dim=5)
      stat = 0
   end subroutine mistaken

   !> Calls the module that called it
   subroutine nested(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      call model%forward([inputs(1)%arg()], outputs(1), stat=stat)
   end subroutine nested

   subroutine long_gradient(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      stat = size(inputs) - 2
      call outputs(1)%zeros([7])
   end subroutine long_gradient
end module procedures_of_the_test

program test_procedures
   use, intrinsic :: ieee_arithmetic, only : ieee_get_halting_mode, ieee_invalid, ieee_support_halting
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use procedures_of_the_test
   implicit none

   real(real64), target :: x(3, 2), y(3, 2)
   character(:), allocatable :: errmsg
   integer :: stat

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   call model%load(script("procedures.py"))
   call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a procedure that is not registered", errmsg, "there is none")
   call torch_register("cube", cube, cube_adjoint)
   call torch_register("split", split, outputs=2)
   call torch_register("failing", failing)
   call torch_register("local memory", local_memory)
   call torch_register("idle", idle)
   call torch_register("vandal", vandal)
   call torch_register("mistaken", mistaken)
   call torch_register("nested", nested)
   call torch_register("long gradient", cube, long_gradient)
   call computes()
   call has_gradients()
   call trains()
   call fails_clearly()
   call fails_backwards()
   call owns_its_outputs()
   call finish()

contains

   subroutine computes()
      real(real64), target :: half(3, 1)
      type(torch_tensor) :: result
      logical :: halts

      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(abs(y - 2*x**3) < 1e-14_real64), "a procedure in a script")
      halts = .false.
      if (ieee_support_halting(ieee_invalid)) call ieee_get_halting_mode(ieee_invalid, halts)
      call expect(halts .eqv. halts_in_the_procedure, "a procedure has the floating-point environment of the program")
      call torch_call("ftn_pytorch.cube", [torch_in(x)], result)
      call result%copy_to(torch_out(y))
      call expect(all(abs(y - x**3) < 1e-14_real64), "a procedure by torch_call")
      call model%call("halves", [torch_in(x)], [torch_out(half)])
      call expect(all(abs(half(:, 1) - (x(:, 1) - x(:, 2))) < 1e-14_real64), "a procedure with two results")
      call model%call("call", [torch_in("nested"), torch_in(x)], [torch_out(y)])
      call expect(all(abs(y - 2*x**3) < 1e-14_real64), "a procedure that calls the script again")
   end subroutine computes

   subroutine has_gradients()
      type(torch_tensor) :: input, loss, gradient
      logical(c_bool), target :: fits

      call model%call("fits", [torch_in(x)], [torch_out(fits)])
      call expect(logical(fits), "gradcheck")
      call input%from_array(x)
      call input%set_requires_grad()
      call model%forward([input%arg()], loss)
      loss = torch_sum(loss)
      call loss%backward()
      call input%grad(gradient)
      call gradient%copy_to(torch_out(y))
      call expect(all(abs(y - 6*x**2) < 1e-13_real64), "backward through a procedure")
      call model%adjoint("ftn_pytorch_forward", [torch_in(x)], [torch_in(x)], [torch_out(y)])
      call expect(all(abs(y - 6*x**3) < 1e-13_real64), "adjoint of a script with a procedure")
   end subroutine has_gradients

   subroutine trains()
      real(real64), target :: field(8, 4), target(8, 4)
      real(real64) :: loss, first
      logical :: done
      integer :: step

      call random_number(field)
      target = field**3
      do step = 1, 400
         done = model%train([torch_in(field)], [torch_in(target)], loss)
         if (step == 1) first = loss
      end do
      call expect(loss < 1e-4_real64*first .and. .not. done, "training through a procedure")
   end subroutine trains

   subroutine owns_its_outputs()
      character(8), parameter :: refused(3) = [character(8) :: "array", "name", "view"], &
         allowed(3) = [character(8) :: "copy", "clone", "input"]
      integer :: i, call_number

      do i = 1, size(refused)
         way = refused(i)
         call model%call("call", [torch_in("local memory"), torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an output in memory of the procedure: " // way, errmsg)
         call expect_text(errmsg, "lies in an array of the program", "an output in memory of the procedure: " // way)
      end do
      do i = 1, size(allowed)
         way = allowed(i)
         do call_number = 1, 4
            y = 0
            call model%call("call", [torch_in("local memory"), torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
            call expect_status(stat, FTN_PYTORCH_OK, "an output of its own: " // way, errmsg)
            call expect(all(abs(y - merge(1, 2, way == "input")*x) == 0), "values of an output of its own: " // way)
         end do
      end do
   end subroutine owns_its_outputs

   subroutine fails_clearly()
      type(torch_tensor) :: result

      call model%call("call", [torch_in("failing"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a procedure that fails", errmsg)
      call expect_text(errmsg, 'procedure "failing" failed with status 7', "a procedure that fails")
      call model%call("call", [torch_in("idle"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "a procedure that makes nothing", errmsg)
      call model%call("call", [torch_in("mistaken"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a procedure whose operation failed", errmsg)
      call expect_text(errmsg, "there is no axis 5", "a procedure whose operation failed")
      call model%call("call", [torch_in("unheard"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "an unknown procedure", errmsg, "cube")
      call model%call("call", [torch_in("vandal"), torch_copy(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "a procedure that changes its input", errmsg)
      call model%call("gradient", [torch_in("idle"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_RESULT_COUNT, "a gradient of nothing", errmsg)
      call model%call("gradient", [torch_in("split"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "several results have no sum", errmsg)
      call model%call("gradient", [torch_in("nested"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a gradient without an adjoint", errmsg, "without an adjoint")
      call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(x)], [torch_out(y)], stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a tangent through a procedure", errmsg)
      call expect_text(errmsg, "'cube' has an adjoint at most", "a tangent through a procedure")
      call model%call("gradient", [torch_in("long gradient"), torch_in(x)], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a gradient of another shape", errmsg)
      call model%call("of_a_number", [torch_arg ::], result, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a procedure of a number", errmsg)
      call torch_register("", cube, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a procedure without a name", errmsg)
      call torch_register("none", cube, outputs=0, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a procedure without outputs", errmsg)
   end subroutine fails_clearly

   !> Where the program asks for the gradient
   subroutine fails_backwards()
      type(torch_tensor) :: tensor, result
      type(torch_scope) :: scope

      call scope%begin()
      call tensor%from_array(x)
      call tensor%set_requires_grad()
      call torch_call("ftn_pytorch.long gradient", [tensor%arg()], result)
      call backward_of(result, FTN_PYTORCH_ERR_SHAPE, "made gradient 1 of shape (7,)")
      call torch_call("ftn_pytorch.nested", [tensor%arg()], result)
      call backward_of(result, FTN_PYTORCH_ERR_HOOK, "without an adjoint")
      call model%call("hooked", [tensor%arg()], result)
      call backward_of(result, FTN_PYTORCH_ERR_PYTHON, "ValueError: the hook of the script")
      call scope%end()
   end subroutine fails_backwards

   !> Fails with the status and the text of what Python has raised, and leaves nothing for the next call
   subroutine backward_of(result, status, part)
      type(torch_tensor), intent(in) :: result
      integer, intent(in) :: status
      character(*), intent(in) :: part

      type(torch_tensor) :: sum

      sum = torch_sum(result*2)
      call sum%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, status, "backward by the program: " // part, errmsg, part)
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "the call after it", errmsg)
   end subroutine backward_of
end program test_procedures
