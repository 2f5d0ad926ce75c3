! SPDX-License-Identifier: MIT
!> Calls on the stream of a queue of OpenACC: in order with its kernels, with and without waiting.
program streams
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: size_of_arrays = 4000000, queue = 1
   type(torch_pymodule) :: model
   real(real32), allocatable :: x(:), y(:)

   allocate (x(size_of_arrays), y(size_of_arrays))
   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call model%load(script("stream.py"))
   call in_order(x, y, size_of_arrays)
   call of_a_saved_model(x, y, size_of_arrays)
   call refused()
   call finish()

contains

   !> y = 2 x + 1 by torch, between two kernels of the queue
   subroutine in_order(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      integer(int64) :: default_stream, stream, stream_after
      integer :: round, i

      x = 0
      y = 0
      !$acc enter data copyin(x, y)
      call model%call("current", [torch_arg ::], [torch_out(default_stream)])
      !$acc parallel loop present(x) async(queue)
      do i = 1, n
         x(i) = 1
      end do

      call model%set_stream(queue=queue)
      call model%call("current", [torch_arg ::], [torch_out(stream)])
      call expect(stream /= default_stream, "calls work on the stream of the queue")
      !$acc host_data use_device(x, y)
      call model%call("long_work", [torch_in(x)], [torch_out(y)])
      !$acc end host_data
      call expect(is_done(), "a call that waits is done when it returns")
      !$acc update self(y)
      call expect(all(y == 2), "and comes after the kernel")

      call model%set_stream(queue=queue, wait=.false.)
      do round = 1, 20
         !$acc parallel loop present(x) async(queue)
         do i = 1, n
            x(i) = round
         end do
         !$acc host_data use_device(x, y)
         call model%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         !$acc parallel loop present(y) async(queue)
         do i = 1, n
            y(i) = y(i) + 1
         end do
      end do
      !$acc wait(queue)
      !$acc update self(y)
      call expect(all(y == 2*20 + 2), "kernels and calls of one queue keep their order without waiting")

      !$acc host_data use_device(x, y)
      call model%call("long_work", [torch_in(x)], [torch_out(y)])
      !$acc end host_data
      call expect(.not. is_done(), "a call that does not wait returns before its work is done")
      call model%wait()
      call expect(is_done(), "wait waits for it")
      !$acc update self(y)
      call expect(all(y == 2*20), "after wait the work is done")

      call model%set_stream()
      call model%call("current", [torch_arg ::], [torch_out(stream_after)])
      call expect(stream_after == default_stream, "the default stream comes back")
      !$acc exit data delete(x, y)
   end subroutine in_order

   !> The same without Python where the library has its direct path
   subroutine of_a_saved_model(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_module) :: long
      integer :: round, i

      call model%call("save_long")
      call long%load("long.pt", device="cuda")
      x = 0
      y = 0
      !$acc enter data copyin(x, y)
      call model%set_stream(queue=queue)
      call long%set_stream(queue=queue)
      do round = 1, 4
         !$acc parallel loop present(x) async(queue)
         do i = 1, n
            x(i) = round
         end do
         !$acc host_data use_device(x, y)
         call long%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         call expect(is_done(), "a saved model that waits is done when it returns")
         !$acc update self(y)
         call expect(all(y == 2*round), "and comes after the kernel")
      end do

      call long%set_stream(queue=queue, wait=.false.)
      do round = 1, 20
         !$acc parallel loop present(x) async(queue)
         do i = 1, n
            x(i) = round
         end do
         !$acc host_data use_device(x, y)
         call long%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         call expect(.not. is_done(), "a saved model that does not wait returns before its work is done")
         !$acc parallel loop present(y) async(queue)
         do i = 1, n
            y(i) = y(i) + 1
         end do
      end do
      !$acc wait(queue)
      !$acc update self(y)
      call expect(all(y == 2*20 + 1), "kernels and a saved model keep their order without waiting")

      !$acc host_data use_device(x, y)
      call long%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      call long%wait()
      call expect(is_done(), "wait waits for a saved model")
      !$acc update self(y)
      call expect(all(y == 2*20), "after wait its work is done")
      call long%set_stream()
      call model%set_stream()
      !$acc host_data use_device(x, y)
      call long%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      !$acc exit data delete(x) copyout(y)
      call expect(all(y == 2*20), "on the default stream it goes on")
   end subroutine of_a_saved_model

   !> Whether the stream that the calls work on has nothing left to do
   function is_done() result(done)
      logical :: done

      call model%call("done", [torch_arg ::], [torch_out(done)])
   end function is_done

   subroutine refused()
      character(:), allocatable :: errmsg
      integer :: stat

      call model%set_stream(queue=77, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "a queue that was never used", errmsg)
   end subroutine refused
end program streams
