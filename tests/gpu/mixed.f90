! SPDX-License-Identifier: MIT
!> Arrays of the host and of the GPU in one call, models elsewhere than their arrays, and what is refused.
program mixed
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use gpu, only : count_warnings, require_gpus, warnings_with
   implicit none

   integer, parameter :: rows = 4, columns = 3
   type(torch_pymodule) :: model
   real(real32) :: x(rows, columns), y(rows, columns)

   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call count_warnings()
   call model%load(script("device.py"))
   call from_the_host_to_a_model_on_the_gpu()
   call in_one_call(x, y, rows, columns)
   call model%call("save_affine")
   call through_a_saved_model("python", x, y, rows, columns)
   call through_a_saved_model("auto", x, y, rows, columns)
   call refused(x, y, rows, columns)
   call finish()

contains

   subroutine from_the_host_to_a_model_on_the_gpu()
      type(torch_pymodule) :: there
      real(real32) :: u(rows, columns), v(rows, columns)
      logical :: is_cuda
      integer(int64) :: address

      call random_number(u)
      call there%load(script("device.py"), device="cuda")
      call there%forward([torch_in(u)], [torch_out(v)])
      call expect(all(v == 2*u + 1), "host arrays through a model on the GPU")
      call there%call("where", [torch_in(u)], [torch_out(is_cuda), torch_out(address)])
      call expect(is_cuda, "which sees them on the GPU")
      v = u
      call there%call("triple", [torch_out(v)])
      call expect(all(v == 3*u), "what it changes comes back")
   end subroutine from_the_host_to_a_model_on_the_gpu

   !> Where inputs are and where outputs are need not be the same
   subroutine in_one_call(x, y, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout) :: x(n, m), y(n, m)

      type(torch_pymodule) :: there
      real(real32) :: u(n, m), v(n, m)
      integer :: i, j

      call random_number(u)
      x = 0
      y = 0
      !$acc enter data copyin(x, y)
      !$acc parallel loop collapse(2) present(x)
      do j = 1, m
         do i = 1, n
            x(i, j) = i*j
         end do
      end do
      !$acc host_data use_device(x, y)
      call model%forward([torch_in(x)], [torch_out(v)])
      call model%forward([torch_in(u)], [torch_out(y)])
      !$acc end host_data
      call expect(all(v == reshape([((2*i*j + 1, i=1, n), j=1, m)], [n, m])), "input on the GPU, output on the host")
      call expect(all(y == 0), "the host's copy of an output on the GPU stays")
      !$acc update self(x, y)
      call expect(all(y == 2*u + 1), "input on the host, output on the GPU")

      call there%load(script("device.py"), device="cuda")
      !$acc host_data use_device(x, y)
      call there%call("add", [torch_in(x), torch_in(u)], [torch_out(y)])
      call there%call("add", [torch_in(x), torch_in(u)], [torch_out(v)])
      !$acc end host_data
      !$acc update self(y)
      call expect(all(y == x + u) .and. all(v == x + u), "inputs of both in one call of a model on the GPU")
      !$acc exit data delete(x, y)
   end subroutine in_one_call

   !> A TorchScript model on the host copies what is on the GPU, and says so once
   subroutine through_a_saved_model(backend, x, y, n, m)
      !> Option of load
      character(*), intent(in) :: backend
      integer, intent(in) :: n, m
      real(real32), intent(inout) :: x(n, m), y(n, m)

      type(torch_module) :: affine
      integer :: before, pass

      x = 4
      y = 0
      before = warnings_with("copied in every call")
      call affine%load("affine.pt", backend=backend)
      !$acc enter data copyin(x, y)
      do pass = 1, 3
         !$acc host_data use_device(x, y)
         call affine%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
      end do
      !$acc exit data delete(x) copyout(y)
      call expect(all(y == 9), backend // ": arrays on the GPU through a saved model on the host")
      call expect(warnings_with("copied in every call") == before + 1, backend // ": one warning tells of the copies")
   end subroutine through_a_saved_model

   subroutine refused(x, y, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout) :: x(n, m), y(n, m)

      type(torch_pymodule) :: numpy
      character(:), allocatable :: errmsg
      integer :: stat

      x = 1
      y = 7
      call numpy%load(script("host_only.py"))
      !$acc enter data copyin(x, y)
      !$acc host_data use_device(x, y)
      call model%forward([torch_copy(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "torch_copy of an array on the GPU", errmsg)
      call numpy%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "an input on the GPU for NumPy", errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, "NumPy", "the text names NumPy")
      !$acc end host_data
      !$acc host_data use_device(y)
      call numpy%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      !$acc end host_data
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "an output on the GPU for NumPy", errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, "NumPy", "the text names NumPy again")
      !$acc exit data delete(x) copyout(y)
      call expect(all(y == 7), "nothing was written")
   end subroutine refused
end program mixed
