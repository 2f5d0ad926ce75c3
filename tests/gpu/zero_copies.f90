! SPDX-License-Identifier: MIT
!> Calls with arrays on the GPU copy nothing between host and GPU, as torch's profiler sees it.
program zero_copies
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: rows = 64, columns = 100
   type(torch_pymodule) :: profiler, model, line
   real(real32) :: x(rows, columns), y(rows, columns)

   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call profiler%load(script("profiler.py"))
   call model%load(script("device.py"), device="cuda")
   call line%load(script("line.py"), device="cuda")
   call random_number(x)
   call of_host_arrays()
   call of_device_arrays(x, y, rows, columns)
   call finish()

contains

   !> Copies between host and GPU since the profiler was started
   subroutine stop_profiler(copies, bytes)
      integer(int64), intent(out) :: copies, bytes

      call profiler%call("stop", [torch_arg ::], [torch_out(copies), torch_out(bytes)])
   end subroutine stop_profiler

   !> That the profiler counts at all: one copy there, one copy back
   subroutine of_host_arrays()
      real(real32) :: u(rows, columns), v(rows, columns)
      integer(int64) :: copies, bytes

      u = 1
      call model%forward([torch_in(u)], [torch_out(v)])
      call profiler%call("start")
      call model%forward([torch_in(u)], [torch_out(v)])
      call stop_profiler(copies, bytes)
      call expect(copies == 2, "arrays of the host are copied there and back")
      call expect(bytes == 2*4*rows*columns, "with all their bytes")
   end subroutine of_host_arrays

   subroutine of_device_arrays(x, y, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout) :: x(n, m), y(n, m)

      integer(int64) :: copies, bytes
      real(real32) :: loss
      integer :: pass

      !$acc enter data copyin(x) create(y)
      !$acc host_data use_device(x, y)
      call model%forward([torch_in(x)], [torch_out(y)])
      call line%train_step([torch_in(x)], [torch_in(y)], loss)
      call profiler%call("start")
      do pass = 1, 10
         call model%forward([torch_in(x)], [torch_out(y)])
         call model%forward([torch_in(x(1:n:2, :))], [torch_out(y(2:n:2, :))])
         call model%call("triple", [torch_out(y)])
      end do
      call stop_profiler(copies, bytes)
      call expect(copies == 0 .and. bytes == 0, "arrays on the GPU are not copied")
      call profiler%call("start")
      do pass = 1, 10
         call line%train_step([torch_in(x)], [torch_in(y)], loss)
      end do
      call stop_profiler(copies, bytes)
      call expect(copies == 10 .and. bytes <= 80, "a training step brings the loss to the host and nothing else")
      !$acc end host_data
      !$acc exit data delete(x, y)
   end subroutine of_device_arrays
end program zero_copies
