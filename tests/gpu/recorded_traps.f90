! SPDX-License-Identifier: MIT
!> load with record=.true. on a GPU, where a graph could keep what has changed since: numbers of the host, blocks on
!> queues of their own, and arrays whose pages are locked.
program recorded_traps
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: calls = 24, n = 4096
   real(real32), allocatable :: x(:), y(:)

   allocate (x(n), y(n))
   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call a_number_as_argument(x, y, n)
   call a_number_of_the_script(x, y, n)
   call blocks_on_queues()
   call a_pinned_array()
   call finish()

contains

   !> Recorded unless it says otherwise; with a device, arrays of the host are copied there
   subroutine load(model, kind, record, device)
      type(torch_pymodule), intent(inout) :: model
      character(*), intent(in) :: kind
      logical, intent(in), optional :: record
      character(*), intent(in), optional :: device

      logical :: is_recorded

      is_recorded = .true.
      if (present(record)) is_recorded = record
      if (present(device)) then
         call model%load(script("recorded_traps.py"), config=[torch_in("kind", kind)], device=device, &
            record=is_recorded)
      else
         call model%load(script("recorded_traps.py"), config=[torch_in("kind", kind)], record=is_recorded)
      end if
   end subroutine load

   subroutine expect_recorded(model)
      type(torch_pymodule), intent(in) :: model

      integer(int64) :: executions

      call model%call("executed", [torch_arg ::], [torch_out(executions)])
      call expect(executions < calls, "Python ran the first calls only")
   end subroutine expect_recorded

   subroutine a_number_as_argument(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_pymodule) :: replayed
      real(real32) :: dt
      integer :: call

      call load(replayed, "scale")
      x = 1
      !$acc enter data copyin(x, y)
      do call = 1, calls
         dt = 0.5
         if (call > 12) dt = 0.1*call
         !$acc host_data use_device(x, y)
         call replayed%forward([torch_in(x), torch_out(dt)], [torch_out(y)])
         !$acc end host_data
         !$acc update self(y)
         call expect(all(y == dt), "a number of the host is read in each call")
      end do
      call expect_recorded(replayed)
      !$acc exit data delete(x, y)
   end subroutine a_number_as_argument

   subroutine a_number_of_the_script(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_pymodule) :: replayed
      real(real32) :: dt
      integer :: call

      call load(replayed, "scale_by_global", device="cuda:0")
      x = 1
      do call = 1, calls
         dt = 0.5
         if (call > 12) dt = 0.1*call
         call replayed%call("set_number", [torch_in(dt)])
         call replayed%forward([torch_in(x)], [torch_out(y)])
         call expect(all(y == dt), "a tensor of the script on the host is read in each call")
      end do
      call expect_recorded(replayed)
   end subroutine a_number_of_the_script

   !> Four blocks, each on a queue of its own, none waits for another
   subroutine blocks_on_queues()
      integer, parameter :: blocks = 4, width = 64, rows = 512
      type(torch_pymodule) :: plain, replayed
      real(real32), allocatable :: u(:, :, :), v(:, :, :), w(:, :, :)
      integer :: round

      allocate (u(width, rows, blocks), v(width, rows, blocks), w(width, rows, blocks))
      call load(plain, "apply", record=.false.)
      call load(replayed, "apply")
      call random_number(u)
      call compute(plain, u, w, width, rows, blocks, 1)
      do round = 1, 30
         call compute(replayed, u, v, width, rows, blocks, 4)
         call expect(all(v == w), "blocks on queues of their own do not meet")
      end do
   end subroutine blocks_on_queues

   subroutine compute(model, u, v, width, rows, blocks, queues)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: width, rows, blocks, queues
      real(real32), intent(inout) :: u(width, rows, blocks), v(width, rows, blocks)

      integer :: block, queue, i

      v = 0
      !$acc enter data copyin(u, v)
      do block = 1, blocks
         queue = mod(block, queues) + 1
         ! a queue must have been used before
         !$acc parallel loop present(v) async(queue)
         do i = 1, rows
            v(1, i, block) = 0
         end do
         call model%set_stream(queue=queue, wait=.false.)
         !$acc host_data use_device(u, v)
         call one_block(model, u(:, :, block), v(:, :, block), width, rows)
         !$acc end host_data
      end do
      !$acc wait
      !$acc exit data copyout(v) delete(u)
      call model%set_stream()
   end subroutine compute

   subroutine one_block(model, u, v, width, rows)
      type(torch_pymodule), intent(in) :: model
      integer, intent(in) :: width, rows
      real(real32), intent(inout), target :: u(width, rows), v(width, rows)

      call model%forward([torch_in(u)], [torch_out(v)])
   end subroutine one_block

   !> 64 MiB, written again as soon as a call has returned
   subroutine a_pinned_array()
      integer, parameter :: large = 16*1024*1024
      type(torch_pymodule) :: replayed
      real(real32), allocatable :: field(:)
      real(real32) :: found(1)
      integer :: call

      allocate (field(large))
      call load(replayed, "mean")
      call torch_pin(torch_in(field))
      do call = 1, calls
         field = call
         call replayed%call("busy")
         call replayed%forward([torch_in(field)], [torch_out(found)])
         field = -1e4
         call expect(found(1) == call, "an array whose pages are locked was read before the call returned")
      end do
      call torch_unpin(torch_in(field))
      call expect_recorded(replayed)
   end subroutine a_pinned_array
end program recorded_traps
