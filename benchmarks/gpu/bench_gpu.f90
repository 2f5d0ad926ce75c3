! SPDX-License-Identifier: MIT
!> One case with arrays of the host, page-locked arrays of the host, and arrays of OpenACC on the GPU: a process that
!> measures, see ../harness/worker.py.
!>
!>     bench_gpu <functions.py> mlp|train_step|unet <size> written|recorded|saved
!>
!> saved: the script is recorded and saved, and its file is called. The file is bench_gpu_<case>_<size>.ftr in the
!> working directory, and is deleted.
!>
!>     host|pinned|device S CALLS   times T...
!>     check                        checked D    largest difference between the three, relative to the largest result
module bench_gpu_warnings
   use, intrinsic :: iso_fortran_env, only : error_unit
   implicit none
   private

   public :: refuse_unrecorded

contains

   !> The time of a step that is not recorded is none of a recorded one
   subroutine refuse_unrecorded(text)
      character(*), intent(in) :: text

      write (error_unit, "(2a)") "warning: ", text
      if (index(text, " is not recorded: ") > 0) error stop "bench_gpu: nothing was measured"
   end subroutine refuse_unrecorded
end module bench_gpu_warnings

program bench_gpu
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use bench_gpu_warnings, only : refuse_unrecorded
   use bench_protocol, only : argument, next_request, now, reply_times, say_started
   use fpt_callable, only : torch_callable
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   use ftn_pytorch
   implicit none

   character(*), parameter :: usage = "bench_gpu <functions.py> mlp|train_step|unet <size> written|recorded|saved"
   integer, parameter :: calls_until_recorded = 8
   type(torch_pymodule), target :: written
   type(torch_module), target :: saved
   class(torch_callable), pointer :: model
   real(real32), allocatable :: fields(:, :, :, :), field(:, :, :, :), x(:, :), y(:, :)
   character(:), allocatable :: name, size_, form
   logical :: is_recorded
   integer :: n

   name = argument(2, usage)
   size_ = argument(3, usage)
   form = argument(4, usage)
   is_recorded = form /= "written"
   read (size_, *) n
   if (acc_get_num_devices(acc_device_nvidia) == 0) then
      error stop "OpenACC has no GPU here, or this program was not compiled for one"
   end if
   call ftn_pytorch_on_warning(refuse_unrecorded)
   call ftn_pytorch_init(device="cuda:0")
   call written%load(argument(1, usage), device="cuda:0", record=is_recorded, &
      config=[torch_in("name", name), torch_in("size", n), torch_in("fused", is_recorded)])
   model => written
   if (name == "unet") then
      allocate (fields(128, 128, 3, n), field(128, 128, 1, n))
      call random_number(fields)
      call answer_fields(fields, field, n)
   else
      allocate (x(16, n), y(4, n))
      call random_number(x)
      call random_number(y)
      call answer_batches(x, y, n)
   end if

contains

   !> Record and save the script, and call its file from now on
   subroutine call_file(input, target, output)
      type(torch_arg), intent(in) :: input, target, output

      real(real64) :: times(1)
      character(:), allocatable :: file
      integer :: unit

      times = times_of(input, target, output, [1, calls_until_recorded])
      file = "bench_gpu_" // name // "_" // size_ // ".ftr"
      call written%save(file)
      call saved%load(file, device="cuda:0", backend="direct")
      open (newunit=unit, file=file)
      close (unit, status="delete")
      model => saved
   end subroutine call_file

   !> Nanoseconds of a call of each sample; numbers: samples, and calls in one
   function times_of(input, target, output, numbers) result(times)
      type(torch_arg), intent(in) :: input, target, output
      integer, intent(in) :: numbers(2)
      real(real64) :: times(numbers(1))

      real(real32) :: loss
      integer(int64) :: start
      integer :: i, j

      do i = 1, numbers(1)
         start = now()
         do j = 1, numbers(2)
            if (name == "train_step") then
               call model%train_step([input], [target], loss)
            else
               call model%forward([input], [output])
            end if
         end do
         times(i) = real(now() - start, real64)/numbers(2)
      end do
   end function times_of

   ! gfortran 12 takes arrays of explicit shape in use_device, but no allocatable ones: so there is one for each rank

   subroutine answer_batches(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(16, n), y(4, n)

      real(real32), allocatable :: pinned_x(:, :), pinned_y(:, :), from_host(:, :), from_pinned(:, :)
      include "answer.inc"
   end subroutine answer_batches

   subroutine answer_fields(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(128, 128, 3, n), y(128, 128, 1, n)

      real(real32), allocatable, dimension(:, :, :, :) :: pinned_x, pinned_y, from_host, from_pinned
      include "answer.inc"
   end subroutine answer_fields
end program bench_gpu
