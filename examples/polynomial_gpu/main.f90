! SPDX-License-Identifier: MIT
!> Train a network on a polynomial with arrays that stay on the GPU from beginning to end.
!>
!>     polynomial_gpu <script>
program polynomial_gpu
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   use ftn_pytorch, only : ftn_pytorch_init, ftn_pytorch_set_threads, torch_in, torch_out, torch_pymodule
   implicit none

   integer, parameter :: batch_size = 1024, steps = 1000
   type(torch_pymodule) :: model
   ! Fortran (1, batch_size) is (batch_size, 1) in PyTorch: a batch of samples with one feature each
   real(real32) :: x(1, batch_size), y(1, batch_size), prediction(1, batch_size)
   real(real64) :: error
   character(4096) :: script
   character(6) :: device
   integer :: status

   call get_command_argument(1, script, status=status)
   if (status /= 0) error stop "usage: polynomial_gpu <script>"

   if (acc_get_num_devices(acc_device_nvidia) > 0) then
      device = "cuda:0"
      print "(2a)", "arrays and network are on ", device
      ! Before the first region: OpenACC adopts the context in which torch works
      call ftn_pytorch_init(device=device)
   else
      device = "cpu"
      print "(a)", "OpenACC has no GPU here: arrays and network are on the host"
      ! A network as small as this is slower on many threads than on one
      call ftn_pytorch_set_threads(1)
   end if
   call model%load(script, device=trim(device))

   call learn(model, x, y, prediction, batch_size, error)
   print "(a, f6.4)", "root mean square error on new samples: ", error
   if (.not. error < 0.02) error stop "the trained network is not accurate"

contains

   !> Train and test. The arrays are those of explicit shape that all compilers take in use_device
   subroutine learn(model, x, y, prediction, n, error)
      !> Loaded network
      type(torch_pymodule), intent(in) :: model
      !> Number of samples
      integer, intent(in) :: n
      !> Samples, wanted and predicted values: used on the GPU only, on the host they stay undefined
      real(real32), intent(inout) :: x(1, n), y(1, n), prediction(1, n)
      !> Root mean square of what is wrong on samples that no step has seen
      real(real64), intent(out) :: error

      real(real64) :: total
      real(real32) :: loss
      integer :: step, i

      !$acc enter data create(x, y, prediction)
      do step = 1, steps
         call draw_batch(x, y, n, step)
         ! The script gets tensors on the memory of OpenACC. Only the loss, a number, comes to the host
         !$acc host_data use_device(x, y)
         call model%train_step([torch_in(x)], [torch_in(y)], loss)
         !$acc end host_data
         if (mod(step, 250) == 0) print "(a, i5, a, es9.2)", "step", step, ", loss", loss
      end do

      call draw_batch(x, y, n, steps + 1)
      !$acc host_data use_device(x, prediction)
      call model%forward([torch_in(x)], [torch_out(prediction)])
      !$acc end host_data
      total = 0
      !$acc parallel loop present(y, prediction) reduction(+:total) copy(total)
      do i = 1, n
         total = total + (prediction(1, i) - y(1, i))**2
      end do
      error = sqrt(total/n)
      !$acc exit data delete(x, y, prediction)
   end subroutine learn

   !> Fill x on the GPU with numbers from -1 to 1, other ones in each step, and y with the polynomial of them
   subroutine draw_batch(x, y, n, step)
      !> Number of samples, and of the batch
      integer, intent(in) :: n, step
      !> Samples and wanted values, present on the GPU
      real(real32), intent(inout) :: x(1, n), y(1, n)

      ! Multiples of the golden ratio without their integer parts fill the interval from 0 to 1 evenly
      real(real64), parameter :: golden = 0.61803398874989485d0
      real(real64) :: turns
      integer :: i

      !$acc parallel loop present(x, y) private(turns)
      do i = 1, n
         turns = (step*n + i)*golden
         x(1, i) = real(2*(turns - int(turns)) - 1, real32)
         y(1, i) = 0.5 + x(1, i)*(1.0 + x(1, i)*(-1.0 + x(1, i)*(-2.0)))
      end do
   end subroutine draw_batch
end program polynomial_gpu
