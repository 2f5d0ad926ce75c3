! SPDX-License-Identifier: MIT
!> Two fields react and diffuse. A network learns the reaction; nothing here knows that the program is profiled.
program profile_a_model
   use, intrinsic :: iso_fortran_env, only: real32
   use ftn_pytorch
   implicit none
   integer, parameter :: n = 48, steps = 40, substeps = 40
   real(real32), parameter :: dt = 0.5_real32/substeps
   type(torch_pymodule) :: closure
   character(len=1024) :: script
   real(real32) :: fields(n, n, 2), tendency(n, n, 2), guess(n, n, 2), loss, first_loss
   logical :: is_completed
   integer :: step, substep

   call get_command_argument(1, script)
   if (len_trim(script) == 0) script = "closure.py"
   call closure%load(trim(script))
   call start(fields)
   do step = 1, steps
      tendency = reaction(fields)
      call closure%forward([torch_in(fields)], [torch_out(guess)])
      is_completed = closure%train([torch_in(fields)], [torch_in(tendency)], loss)
      if (step == 1) first_loss = loss
      do substep = 1, substeps
         fields = fields + dt*(reaction(fields) + 0.2_real32*laplacian(fields))
      end do
   end do
   print "(a, es8.1, a, es8.1)", "loss in the first step ", first_loss, ", in the last ", loss
   if (.not. loss < first_loss/2) error stop "the network has not learnt"

contains

   subroutine start(values)
      real(real32), intent(out) :: values(:, :, :)
      integer :: i, j
      do j = 1, n
         do i = 1, n
            values(i, j, 1) = 2*sin(0.2_real32*i)*cos(0.3_real32*j)
            values(i, j, 2) = cos(0.01_real32*i*j)
         end do
      end do
   end subroutine start

   !> The equations of FitzHugh and Nagumo.
   pure function reaction(values) result(rate)
      real(real32), intent(in) :: values(:, :, :)
      real(real32) :: rate(n, n, 2)
      rate(:, :, 1) = values(:, :, 1) - values(:, :, 1)**3/3 - values(:, :, 2)
      rate(:, :, 2) = 0.08_real32*(values(:, :, 1) + 0.7_real32 - 0.8_real32*values(:, :, 2))
   end function reaction

   pure function laplacian(values) result(change)
      real(real32), intent(in) :: values(:, :, :)
      real(real32) :: change(n, n, 2)
      change = cshift(values, 1, 1) + cshift(values, -1, 1) + cshift(values, 1, 2) + cshift(values, -1, 2) - 4*values
   end function laplacian

end program profile_a_model
