! SPDX-License-Identifier: MIT
!> A closure for a coarse solver is trained twice: a priori, on single steps, and a posteriori, on runs of 20 steps
!> through the Fortran solver and its adjoint. What counts is the error of long runs from fields that neither has seen.
program training_through_solver
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real64
   use burgers, only : averaged, step
   use ftn_pytorch
   use solver_steps, only : solver, solver_adjoint, time_step
   implicit none

   integer, parameter :: cells = 32, refinement = 16, substeps = 32, samples = 8, length = 100, long_run = 200
   integer, parameter :: epochs_a_priori = 800, epochs_a_posteriori = 150
   real(real64), target :: runs(cells, samples, 0:length), reference(cells, samples, 0:long_run)
   real(real64), target :: fields(cells, samples, long_run), start(cells, samples)
   character(12), parameter :: names(3) = [character(12) :: "none", "a priori", "a posteriori"]
   real(real64) :: errors(long_run, 3), loss
   type(torch_pymodule) :: model
   character(4096) :: script
   logical(c_bool) :: fits
   integer :: i

   call get_command_argument(1, script)
   if (script == "") script = "closure.py"
   call torch_register("solver", solver, solver_adjoint)
   call model%load(script)
   call model%call("fits", outputs=[torch_out(fits)])
   if (.not. fits) error stop "the adjoint does not fit the solver"

   call make_reference(runs, 0)
   call make_reference(reference, samples)
   call model%call("train_a_priori", [torch_in(runs), torch_in(epochs_a_priori)], [torch_out(loss)])
   print "(a, es9.2)", "a priori:     error of a step in units of 0.01, squared ", loss
   call model%call("train_a_posteriori", [torch_in(runs), torch_in(epochs_a_posteriori)], [torch_out(loss)])
   print "(a, es9.2)", "a posteriori: error of 20 steps, squared               ", loss
   start = reference(:, :, 0)
   do i = 1, size(names)
      call model%call("run", [torch_in(trim(names(i))), torch_in(start), torch_in(long_run)], [torch_out(fields)])
      call compare(errors(:, i))
      print "(3a, f7.4)", "closure ", names(i), ": error of long runs ", errors(long_run, i)
   end do
   call write_errors()
   if (errors(long_run, 3) > 0.8_real64*errors(long_run, 2) .or. errors(long_run, 2) > errors(long_run, 1)) then
      error stop "training through the solver should be better, and any closure better than none"
   end if

contains

   !> Runs on a fine grid, averaged over coarse cells at each coarse step
   subroutine make_reference(coarse, first)
      !> Fields (cells, samples, steps)
      real(real64), intent(out) :: coarse(:, :, 0:)
      !> Number that makes other initial fields
      integer, intent(in) :: first

      real(real64) :: u(cells*refinement), x(cells*refinement)
      integer :: i, sample, time, substep

      x = [(8*atan(1.0_real64)*(i - 0.5_real64)/size(x), i=1, size(x))]
      do sample = 1, samples
         u = 0.8_real64*sin(x + 1.7_real64*(first + sample)) + 0.4_real64*sin(2*x + 0.9_real64*(first + sample)**2) &
            + 0.2_real64*cos(3*x + 2.3_real64*(first + sample))
         coarse(:, sample, 0) = averaged(u, cells)
         do time = 1, ubound(coarse, 3)
            do substep = 1, substeps
               u = step(u, time_step/substeps)
            end do
            coarse(:, sample, time) = averaged(u, cells)
         end do
      end do
   end subroutine make_reference

   !> Root mean square of the error of all runs up to each time
   subroutine compare(error)
      real(real64), intent(out) :: error(long_run)

      integer :: time

      do time = 1, long_run
         error(time) = sqrt(sum((fields(:, :, :time) - reference(:, :, 1:time))**2)/(cells*samples*time))
      end do
   end subroutine compare

   subroutine write_errors()
      integer :: unit, time

      open (newunit=unit, file="training_through_solver.csv", action="write", status="replace")
      write (unit, "(a)") "time,none,a priori,a posteriori"
      do time = 1, long_run
         write (unit, "(f8.3, 3(',', es12.5))") time*time_step, errors(time, :)
      end do
      close (unit)
   end subroutine write_errors
end program training_through_solver
