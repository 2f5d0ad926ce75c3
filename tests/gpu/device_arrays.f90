! SPDX-License-Identifier: MIT
!> Arrays of OpenACC, or of OpenMP, as inputs and outputs: the script computes in their memory on the GPU. The compiler
!> is told one of the two, and takes the directives of the other for comments.
program device_arrays
   use, intrinsic :: iso_c_binding, only : c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   use offloading, only : device_address
   implicit none

   integer, parameter :: rows = 6, columns = 3
   type(torch_pymodule) :: model
   real(real32) :: x32(rows, columns), y32(rows, columns)
   real(real64) :: x64(rows, columns), y64(rows, columns)
   integer(int32) :: i32(rows, columns), j32(rows, columns)
   integer(int64) :: i64(rows, columns), j64(rows, columns)

   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call model%load(script("device.py"))
   call of_float32(x32, y32, rows, columns)
   call of_float64(x64, y64, rows, columns)
   call of_int32(i32, j32, rows, columns)
   call of_int64(i64, j64, rows, columns)
   call found_by_host_address()
   call results_of(x64, y64, rows, columns)
   call changed_in_place(x32, rows, columns)
   call trains(x32, y32, rows, columns)
   call finish()

contains

   ! gfortran 12 takes arrays of explicit shape in use_device, but no allocatable ones

   subroutine of_float32(x, y, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout), target :: x(n, m), y(n, m)

      character(*), parameter :: dtype = "float32"
      include "device_kind.inc"
   end subroutine of_float32

   subroutine of_float64(x, y, n, m)
      integer, intent(in) :: n, m
      real(real64), intent(inout), target :: x(n, m), y(n, m)

      character(*), parameter :: dtype = "float64"
      include "device_kind.inc"
   end subroutine of_float64

   subroutine of_int32(x, y, n, m)
      integer, intent(in) :: n, m
      integer(int32), intent(inout), target :: x(n, m), y(n, m)

      character(*), parameter :: dtype = "int32"
      include "device_kind.inc"
   end subroutine of_int32

   subroutine of_int64(x, y, n, m)
      integer, intent(in) :: n, m
      integer(int64), intent(inout), target :: x(n, m), y(n, m)

      character(*), parameter :: dtype = "int64"
      include "device_kind.inc"
   end subroutine of_int64

   !> Allocatable arrays, by what the runtime knows of their addresses on the host
   subroutine found_by_host_address()
      real(real32), allocatable, target :: x(:, :), y(:, :)
      type(c_ptr) :: from, to

      allocate (x(rows, columns), y(rows, columns))
      call random_number(x)
      y = 0
      !$acc enter data copyin(x, y)
      !$omp target enter data map(to: x, y)
      from = transfer(device_address(c_loc(x)), c_null_ptr)
      to = transfer(device_address(c_loc(y)), c_null_ptr)
      call model%forward([torch_in(from, shape(x), "float32")], [torch_out(to, shape(y), "float32")])
      call expect(all(y == 0), "the host's array is not written")
      !$acc update self(y)
      !$omp target update from(y)
      call expect(all(y == 2*x + 1), "allocatable arrays by their addresses")
      !$acc exit data delete(x, y)
      !$omp target exit data map(delete: x, y)
   end subroutine found_by_host_address

   !> torch_results of what was computed on the GPU, there and on the host
   subroutine results_of(x, y, n, m)
      integer, intent(in) :: n, m
      real(real64), intent(inout), target :: x(n, m), y(n, m)

      type(torch_results) :: results
      type(torch_tensor) :: tensor
      real(real64) :: here(n, m), total
      real(real64), pointer :: seen(:, :)
      integer(int64) :: address
      integer :: i, j, stat

      !$acc enter data create(x, y)
      !$omp target enter data map(alloc: x, y)
      !$acc parallel loop collapse(2) present(x, y)
      !$omp target teams distribute parallel do collapse(2)
      do j = 1, m
         do i = 1, n
            x(i, j) = i*j
            y(i, j) = 0
         end do
      end do
      !$acc host_data use_device(x, y)
      !$omp target data use_device_addr(x, y)
      call model%call("named", [torch_in(x)], results)
      call results%copy_to("half", y)
      !$acc end host_data
      !$omp end target data
      !$acc update self(y)
      !$omp target update from(y)
      call expect(all(y == reshape([((i*j/2d0, i=1, n), j=1, m)], [n, m])), "copy_to writes a result on the GPU there")
      call results%copy_to("half", here)
      call expect(all(here == y), "copy_to brings a result to the host")
      call results%to_array("half", seen, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "no pointer of Fortran to memory of the GPU")
      call results%get("half", tensor)
      call torch_call("Tensor.data_ptr", [tensor%arg()], [torch_out(address)])
      call expect(address /= 0, "but its address")
      call results%scalar("total", total)
      call expect(abs(total - n*(n + 1)*m*(m + 1)/4d0) < 1d-9, "a number comes to the host")
      !$acc exit data delete(x, y)
      !$omp target exit data map(delete: x, y)
   end subroutine results_of

   !> Only torch_out allows a script to change an array
   subroutine changed_in_place(x, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout), target :: x(n, m)

      character(:), allocatable :: errmsg
      integer :: stat

      x = 2
      !$acc enter data copyin(x)
      !$omp target enter data map(to: x)
      !$acc host_data use_device(x)
      !$omp target data use_device_addr(x)
      call model%call("triple", [torch_out(x)])
      !$acc end host_data
      !$omp end target data
      call expect(all(x == 2), "the host's array is another one")
      !$acc update self(x)
      !$omp target update from(x)
      call expect(all(x == 6), "a script changes an array on the GPU")
      !$acc host_data use_device(x)
      !$omp target data use_device_addr(x)
      call model%call("triple", [torch_in(x)], stat=stat, errmsg=errmsg)
      !$acc end host_data
      !$omp end target data
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "without torch_out it is refused", errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, "torch_out", "with what to do")
      !$acc exit data delete(x)
      !$omp target exit data map(delete: x)
   end subroutine changed_in_place

   !> Gradient steps of y = w x from w = 0, beside the same in Fortran
   subroutine trains(x, y, n, m)
      integer, intent(in) :: n, m
      real(real32), intent(inout), target :: x(n, m), y(n, m)

      type(torch_pymodule) :: trained
      real(real32) :: loss, wanted, weight
      integer :: step, i, j

      !$acc enter data create(x, y)
      !$omp target enter data map(alloc: x, y)
      !$acc parallel loop collapse(2) present(x, y)
      !$omp target teams distribute parallel do collapse(2)
      do j = 1, m
         do i = 1, n
            x(i, j) = 1.0/i
            y(i, j) = 3.0/i
         end do
      end do
      !$acc update self(x, y)
      !$omp target update from(x, y)
      weight = 0
      call trained%load(script("line.py"), device="cuda")
      do step = 1, 5
         !$acc host_data use_device(x, y)
         !$omp target data use_device_addr(x, y)
         call trained%train_step([torch_in(x)], [torch_in(y)], loss)
         !$acc end host_data
         !$omp end target data
         wanted = sum((weight*x - y)**2)/(n*m)
         weight = weight - 0.1*sum(2*(weight*x - y)*x)/(n*m)
         call expect(abs(loss - wanted) <= 1e-5*wanted, "loss of a training step on the GPU")
      end do
      !$acc host_data use_device(x, y)
      !$omp target data use_device_addr(x, y)
      call trained%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      !$omp end target data
      !$acc update self(y)
      !$omp target update from(y)
      call expect(all(abs(y - weight*x) < 1e-5), "the trained weight")
      !$acc exit data delete(x, y)
      !$omp target exit data map(delete: x, y)
   end subroutine trains
end program device_arrays
