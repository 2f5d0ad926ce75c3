! SPDX-License-Identifier: MIT
!> Modes of torch that one script leaves behind, also where its call fails: its next call finds them again, and neither
!> another script, nor tensors of the program, nor a saved model sees them.
module procedure_of_the_test
   use ftn_pytorch
   implicit none
   private

   public :: another, calls_another

   type(torch_pymodule), save :: another

contains

   !> Called by one script, calls another one
   subroutine calls_another(inputs, outputs, stat)
      type(torch_tensor), intent(in) :: inputs(:)
      type(torch_tensor), intent(inout) :: outputs(:)
      integer, intent(inout) :: stat

      call another%call("switch_off", stat=stat)
      if (stat == FTN_PYTORCH_OK) call outputs(1)%ones_like(inputs(1), stat=stat)
   end subroutine calls_another
end module procedure_of_the_test

program test_script_modes
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use procedure_of_the_test
   implicit none

   integer, parameter :: plain(6) = [1, 0, 0, 0, 0, 4], imported(6) = [1, 0, 0, 0, 0, 8]
   character(*), parameter :: modes(*) = [character(13) :: "gradients", "inference", "autocast", "deterministic", &
      "device", "default type"]
   integer, parameter :: left(6, 6) = reshape([ &
      0, 0, 0, 0, 0, 8, &
      0, 1, 0, 0, 0, 8, &
      1, 0, 1, 0, 0, 8, &
      1, 0, 0, 1, 0, 8, &
      1, 0, 0, 0, 1, 8, &
      1, 0, 0, 0, 0, 2], [6, 6])
   type(torch_pymodule) :: leaves, sees
   type(torch_module) :: saved
   integer :: i

   call sees%load(script("sees_modes.py"))
   call expect(all(modes_of(sees) == plain), "before")
   call sees%call("write", [torch_in("asks_modes.pt")])
   call saved%load("asks_modes.pt")
   call leaves%load(script("leaves_modes.py"))
   call nobody_else_sees("import")
   call expect(all(modes_of(leaves) == imported), "import: found again")
   do i = 1, size(modes)
      call leaves_behind(trim(modes(i)), "leave", left(:, i))
      call leaves_behind(trim(modes(i)), "fail", left(:, i))
   end do
   call the_program_chooses()
   call on_another_thread()
   call within_another_call()
   call a_load_that_fails()
   call what_stays()
   call leaves%free()
   call nobody_else_sees("free")
   call finish()

contains

   function modes_of(model, function) result(found)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in), optional :: function
      integer :: found(6)

      type(torch_results) :: results
      integer :: i

      if (present(function)) then
         call model%call(function, [torch_arg ::], results)
      else
         call model%call("modes", [torch_arg ::], results)
      end if
      do i = 1, 6
         call results%scalar(i, found(i))
      end do
   end function modes_of

   subroutine leaves_behind(mode, how, expected)
      character(*), intent(in) :: mode, how
      integer, intent(in) :: expected(6)

      integer :: stat

      call leaves%call(how, [torch_in(mode)], stat=stat)
      call expect_status(stat, merge(FTN_PYTORCH_OK, FTN_PYTORCH_ERR_PYTHON, how == "leave"), how // " " // mode)
      call nobody_else_sees(how // " " // mode)
      call expect(all(modes_of(leaves) == expected), how // " " // mode // ": found again")
      call nobody_else_sees(how // " " // mode // ", once more")
      call leaves%call("clear")
      call expect(all(modes_of(leaves) == imported), how // " " // mode // ": cleared")
   end subroutine leaves_behind

   subroutine nobody_else_sees(what)
      character(*), intent(in) :: what

      type(torch_tensor) :: ones, x, y, gradient
      type(torch_scope) :: scope
      real(real64), target :: p(2)
      real(real64) :: q(2)
      real :: u(3), v(3)

      call scope%begin()
      p = [1, 2]
      call x%from_array(p)
      call x%set_requires_grad()
      y = torch_sum(x**2)
      call y%backward()
      call x%grad(gradient)
      call gradient%copy_to(torch_out(q))
      call expect(all(abs(q - 2*p) < 1e-12), what // ": gradients of tensors")
      call ones%ones([3])
      call expect(ones%dtype() == "float32" .and. ones%device() == "cpu", what // ": tensors are " // ones%dtype())
      call scope%end()
      call expect(all(modes_of(sees) == plain), what // ": another script")
      u = 1
      call saved%forward([torch_in(u)], [torch_out(v)])
      call expect(all(abs(v - 2) < 1e-6), what // ": a saved model")
   end subroutine nobody_else_sees

   !> A scope without gradients holds for scripts, and what one has left does not end with it
   subroutine the_program_chooses()
      type(torch_scope) :: scope

      call scope%begin()
      call scope%no_grad()
      call expect(all(modes_of(sees) == [0, 0, 0, 0, 0, 4]), "no_grad: a script")
      call expect(all(modes_of(leaves) == [0, 0, 0, 0, 0, 8]), "no_grad: a script with modes of its own")
      call leaves%call("leave", [torch_in("deterministic")])
      call scope%end()
      call nobody_else_sees("no_grad has ended")
      call expect(all(modes_of(leaves) == [1, 0, 0, 1, 0, 8]), "no_grad has ended: a script with modes of its own")
      call leaves%call("clear")
      call scope%begin()
      call scope%no_grad()
      call sees%call("switch_off")
      call scope%end()
      call nobody_else_sees("gradients were off already")
   end subroutine the_program_chooses

   !> A script has its modes on whatever thread it is called
   subroutine on_another_thread()
      integer :: found(6), others(6)

      call leaves%call("leave", [torch_in("inference")])
      found = 0
      others = 0
      !$omp parallel num_threads(2) shared(found, others)
      !$omp single
      !$omp task shared(found, others) untied
      found = modes_of(leaves)
      others = modes_of(sees)
      !$omp end task
      !$omp end single
      !$omp end parallel
      call expect(all(found == left(:, 2)), "another thread: found again")
      call expect(all(others == plain), "another thread: another script")
      call leaves%call("clear")
      call nobody_else_sees("another thread")
   end subroutine on_another_thread

   !> A script that a procedure of the program calls from within a call of another one
   subroutine within_another_call()
      type(torch_results) :: results
      real :: x(2)
      integer :: gradients, type

      x = 1
      call another%load(script("sees_modes.py"))
      call torch_register("calls_another", calls_another)
      call leaves%call("within", [torch_in(x)], results)
      call results%scalar(1, gradients)
      call results%scalar(6, type)
      call expect(gradients == 0 .and. type == 8, "within another call: the outer one goes on with its own")
      call leaves%call("clear")
      call nobody_else_sees("within another call")
      call another%free()
   end subroutine within_another_call

   !> What a script asks of the process by name stays, except for the floating-point state
   subroutine what_stays()
      real, volatile :: tiny_number

      call leaves%call("change_process")
      call expect(all(modes_of(sees, "process") == [1, int(o"77"), 1, 1, 1, 0]), "what it asks of the process stays")
      tiny_number = tiny(tiny_number)
      tiny_number = tiny_number/2
      call expect(tiny_number > 0, "flush to zero does not")
   end subroutine what_stays

   subroutine a_load_that_fails()
      type(torch_pymodule) :: broken
      integer :: stat, unit

      open (newunit=unit, file="leaves_and_fails.py", action="write", status="replace")
      write (unit, "(a)") "import torch", "torch.set_default_dtype(torch.float64)", "torch.set_grad_enabled(False)", &
         "1/0"
      close (unit)
      call broken%load("leaves_and_fails.py", stat=stat)
      call expect(stat /= FTN_PYTORCH_OK, "a load that fails")
      call nobody_else_sees("a load that fails")
   end subroutine a_load_that_fails
end program test_script_modes
