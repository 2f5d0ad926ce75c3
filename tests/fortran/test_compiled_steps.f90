! SPDX-License-Identifier: MIT
!> load with record="compiled": the results of the script within a tolerance, before the compiler is ready and after.
program test_compiled_steps
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   integer, parameter :: steps = 20, functions = 2, longest_wait = 3000
   real(real64), parameter :: near = 1d-6
   type(torch_pymodule) :: plain, compiled
   real(real64) :: x(2, 8), target(2, 8), y(2, 8), z(2, 8), losses(steps), again(steps)
   integer :: stat, attempt
   logical :: is_ready
   character(:), allocatable :: errmsg

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   target = sin(x)
   call plain%load(script("compiled_steps.py"))
   call compiled%load(script("compiled_steps.py"), record="compiled", tolerance=1d-9)
   call run(plain, losses)
   call run(compiled, again)
   call expect(all(abs(again - losses) < near), "steps while the compiler works")
   is_ready = .false.
   do attempt = 1, longest_wait
      call compiled%call("is_compiled", [torch_in(functions)], [torch_out(is_ready)])
      if (is_ready) exit
   end do
   call expect(is_ready, "the compiler is ready")
   call run(plain, losses)
   call run(compiled, again)
   call expect(all(abs(again - losses) < near), "steps of compiled code")
   call plain%forward([torch_in(x)], [torch_out(y)])
   call compiled%forward([torch_in(x)], [torch_out(z)])
   call expect(all(abs(y - z) < near), "predictions of compiled code")
   call compiled%load(script("compiled_steps.py"), record="compield", stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a word that is not known", errmsg, "recorded, compiled")
   call finish()

contains

   subroutine run(model, found)
      type(torch_pymodule), intent(in) :: model
      real(real64), intent(out) :: found(:)

      integer :: step

      do step = 1, steps
         call model%train_step([torch_in(x)], [torch_in(target)], found(step))
         call model%forward([torch_in(x)], [torch_out(y)])
      end do
   end subroutine run
end program test_compiled_steps
