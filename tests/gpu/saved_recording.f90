! SPDX-License-Identifier: MIT
!> A saved recording on a GPU: the numbers of its script, for arrays of the host and of the device; files go from the
!> host to a GPU and back.
program saved_recording
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   integer, parameter :: rows = 64, steps = 20
   real(real32), parameter :: near = 1e-4
   type(torch_pymodule) :: on_gpu, on_host
   type(torch_module) :: closure
   real(real32), allocatable :: x(:, :), target(:, :), y(:, :), expected(:, :)
   real(real32) :: losses(steps), again(steps)

   allocate (x(2, rows), target(2, rows), y(2, rows), expected(2, rows))
   call random_number(x)
   target = sin(x)
   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call on_gpu%load(script("closure.py"), config=[torch_in("where", "cuda")], device="cuda:0", record=.true.)
   call on_host%load(script("closure.py"), config=[torch_in("where", "cpu")], record=.true.)

   call start(on_gpu, "of_gpu.ftr")
   call closure%load("of_gpu.ftr", device="cuda:0")
   call expect(closure%backend() == "direct", "it runs without Python")
   call train(closure, again)
   call expect(all(again == losses), "steps on a GPU are those of the script, bit for bit")
   call closure%forward([torch_in(x)], [torch_out(y)])
   call expect(all(y == expected), "predictions, too")
   call goes_on_with_another_rate()
   call on_the_device(x, y, rows)
   call at_other_addresses(rows)
   call closure%checkpoint("of_gpu", step=1)
   call on_gpu%restore("of_gpu")
   call on_gpu%forward([torch_in(x)], [torch_out(expected)])
   call closure%forward([torch_in(x)], [torch_out(y)])
   call expect(all(y == expected), "the script goes on from its checkpoint")

   call start(on_host, "of_host.ftr")
   call closure%load("of_host.ftr", device="cuda:0")
   call train(closure, again)
   call expect(all(abs(again - losses) < near), "a file of the host on a GPU")
   call start(on_gpu, "of_gpu.ftr")
   call closure%load("of_gpu.ftr")
   call train(closure, again)
   call expect(all(abs(again - losses) < near), "a file of a GPU on the host")
   call finish()

contains

   !> Record, write the file, and train on in the script
   subroutine start(model, file)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: file

      real(real32) :: loss
      integer :: call
      logical :: completed

      do call = 1, 8
         completed = model%train([torch_in(x)], [torch_in(target)], loss)
         call model%forward([torch_in(x)], [torch_out(expected)])
      end do
      call model%save(file)
      do call = 1, steps
         completed = model%train([torch_in(x)], [torch_in(target)], losses(call))
      end do
      call model%forward([torch_in(x)], [torch_out(expected)])
   end subroutine start

   subroutine train(model, found)
      type(torch_module), intent(in) :: model
      real(real32), intent(out) :: found(:)

      integer :: call

      do call = 1, steps
         call model%train([torch_in(x)], [torch_in(target)], found(call))
      end do
   end subroutine train

   !> A graph has the number in it
   subroutine goes_on_with_another_rate()
      real(real32) :: loss_of_script, loss_of_file
      real(real64), parameter :: rates(3) = [2d-3, 2d-3, 5d-3] ! the second is the same graph
      integer :: round, call
      logical :: is_same

      is_same = .true.
      do round = 1, size(rates)
         call closure%set("lr", rates(round))
         call on_gpu%call("set_rate", [torch_in(rates(round))])
         do call = 1, 6
            call on_gpu%train_step([torch_in(x)], [torch_in(target)], loss_of_script)
            call closure%train_step([torch_in(x)], [torch_in(target)], loss_of_file)
            is_same = is_same .and. loss_of_script == loss_of_file
         end do
      end do
      call expect(is_same, "steps with other rates are those of the script, bit for bit")
      call on_gpu%forward([torch_in(x)], [torch_out(expected)])
      call closure%forward([torch_in(x)], [torch_out(y)])
      call expect(all(y == expected), "and what comes of them")
   end subroutine goes_on_with_another_rate

   subroutine on_the_device(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(2, n), y(2, n)

      y = 0
      !$acc enter data copyin(x, y)
      !$acc host_data use_device(x, y)
      call closure%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      !$acc update self(y)
      !$acc exit data delete(x, y)
      call expect(all(y == expected), "arrays on the device are read and written there")
   end subroutine on_the_device

   !> A graph reads where it was captured, or from buffers: places that come again, that change, and are not aligned
   subroutine at_other_addresses(n)
      integer, intent(in) :: n

      real(real32) :: x(2, 2*n), y(2, n), expected(2, n)
      integer, parameter :: places(5, 4) = &
         reshape([1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 3, 2, 65, 4, 33, 2, 2, 2, 2, 1], [5, 4])
      integer :: round, call, first
      logical :: is_same

      call random_number(x)
      !$acc enter data copyin(x, y, expected)
      do round = 1, size(places, 2)
         is_same = .true.
         do call = 1, 4*size(places, 1)
            first = places(1 + mod(call, size(places, 1)), round)
            x(1, first) = real(call)
            !$acc update device(x)
            !$acc host_data use_device(x, y, expected)
            call closure%forward([torch_in(x(:, first:first + n - 1))], [torch_out(y)])
            call on_gpu%forward([torch_in(x(:, first:first + n - 1))], [torch_out(expected)])
            !$acc end host_data
            !$acc update self(y, expected)
            is_same = is_same .and. all(y == expected)
         end do
         call expect(is_same, "arrays at other addresses on the device")
      end do
      !$acc exit data delete(x, y, expected)
   end subroutine at_other_addresses
end program saved_recording
