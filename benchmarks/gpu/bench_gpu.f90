! SPDX-License-Identifier: MIT
!> One case with arrays of the host, page-locked arrays of the host, and arrays of OpenACC on the GPU.
!>
!>     bench_gpu <functions.py> mlp|train_step|unet <size> [recorded|saved]
!>
!> saved: the script is recorded and saved, and its file is called. The file is bench_gpu_<case>_<size>.ftr in the
!> working directory, and is deleted.
!>
!> Says "ready"; then reads "way calls" from standard input and answers with the seconds that these calls took. The way
!> "check" answers with the largest difference between the results of the three ways, relative to the largest result.
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
   use fpt_callable, only : torch_callable
   use openacc, only : acc_device_nvidia, acc_get_num_devices
   use ftn_pytorch
   implicit none

   type(torch_pymodule), target :: written
   type(torch_module), target :: saved
   class(torch_callable), pointer :: model
   real(real32), allocatable :: fields(:, :, :, :), field(:, :, :, :)
   real(real32), allocatable :: pinned_fields(:, :, :, :), pinned_field(:, :, :, :)
   real(real32), allocatable :: x(:, :), y(:, :), pinned_x(:, :), pinned_y(:, :)
   character(4096) :: script
   character(16) :: name, number, way
   integer, parameter :: recorded_after = 8
   real(real32) :: loss
   integer :: n, call
   logical :: is_recorded, is_saved

   call get_command_argument(1, script)
   call get_command_argument(2, name)
   call get_command_argument(3, number)
   read (number, *) n
   is_recorded = command_argument_count() > 3
   is_saved = .false.
   if (is_recorded) then
      call get_command_argument(4, way)
      is_saved = way == "saved"
   end if
   if (acc_get_num_devices(acc_device_nvidia) == 0) then
      error stop "OpenACC has no GPU here, or this program was not compiled for one"
   end if
   call ftn_pytorch_on_warning(refuse_unrecorded)
   call ftn_pytorch_init(device="cuda:0")
   call written%load(script, device="cuda:0", record=is_recorded, &
      config=[torch_in("name", trim(name)), torch_in("size", n), torch_in("fused", is_recorded)])
   model => written
   if (name == "unet") then
      allocate (fields(128, 128, 3, n), field(128, 128, 1, n))
      allocate (pinned_fields(128, 128, 3, n), pinned_field(128, 128, 1, n))
      call random_number(fields)
      pinned_fields = fields
      call torch_pin(torch_in(pinned_fields))
      call torch_pin(torch_in(pinned_field))
      if (is_saved) then
         do call = 1, recorded_after
            call written%forward([torch_in(fields)], [torch_out(field)])
         end do
         call take_file()
      end if
      call answer_fields(fields, field, pinned_fields, pinned_field)
      call torch_unpin(torch_in(pinned_fields))
      call torch_unpin(torch_in(pinned_field))
   else
      allocate (x(16, n), y(4, n), pinned_x(16, n), pinned_y(4, n))
      call random_number(x)
      call random_number(y)
      pinned_x = x
      pinned_y = y
      call torch_pin(torch_in(pinned_x))
      call torch_pin(torch_in(pinned_y))
      if (is_saved) then
         do call = 1, recorded_after
            if (name == "train_step") then
               call written%train_step([torch_in(x)], [torch_in(y)], loss)
            else
               call written%forward([torch_in(x)], [torch_out(y)])
            end if
         end do
         call take_file()
      end if
      call answer_batches(x, y, pinned_x, pinned_y, n)
      call torch_unpin(torch_in(pinned_x))
      call torch_unpin(torch_in(pinned_y))
   end if

contains

   !> Save the recorded script, and call its file from now on
   subroutine take_file()
      character(:), allocatable :: file
      integer :: unit

      file = "bench_gpu_"//trim(name)//"_"//trim(number)//".ftr"
      call written%save(file)
      call saved%load(file, device="cuda:0", backend="direct")
      open (newunit=unit, file=file)
      close (unit, status="delete")
      model => saved
   end subroutine take_file

   ! gfortran 12 takes arrays of explicit shape in use_device, but no allocatable ones: so there is one for each rank

   subroutine answer_batches(x, y, pinned_x, pinned_y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(16, n), y(4, n), pinned_x(16, n), pinned_y(4, n)

      real(real32) :: from_host(4, n), from_pinned(4, n)
      include "answer.inc"
   end subroutine answer_batches

   subroutine answer_fields(x, y, pinned_x, pinned_y)
      real(real32), intent(inout) :: x(128, 128, 3, n), y(128, 128, 1, n)
      real(real32), intent(inout) :: pinned_x(128, 128, 3, n), pinned_y(128, 128, 1, n)

      real(real32) :: from_host(128, 128, 1, n), from_pinned(128, 128, 1, n)
      include "answer.inc"
   end subroutine answer_fields
end program bench_gpu
