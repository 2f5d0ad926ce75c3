! SPDX-License-Identifier: MIT
!> Networks that ask whether gradients are on find the mode of the program, on each path as in plain Python.
program test_gradient_modes
   use, intrinsic :: iso_fortran_env, only : int32, real32
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: python

   call python%load(script("gradient_modes.py"))
   call python%call("write")
   call compare("asks_modes.pt", [3, 1, 1])
   call compare("padded.pt", [8, 5, 4])
   call finish()

contains

   subroutine compare(file, extents)
      character(*), intent(in) :: file
      integer, intent(in) :: extents(3)

      real(real32) :: x(extents(1), extents(2), extents(3)), expected(size(x), 0:1)
      integer :: i

      x = reshape(sin([(real(i, real32), i=1, size(x))]), extents)
      do i = 0, 1
         expected(:, i) = plain(file, x, i)
      end do
      call expect(any(expected(:, 0) /= expected(:, 1)), file // ": the mode decides on numbers")
      call on_each_path(file, x, expected, "direct")
      call on_each_path(file, x, expected, "python")
      call by_a_script(file, x, expected, .false.)
      call by_a_script(file, x, expected, .true.)
   end subroutine compare

   function plain(file, x, gradients) result(values)
      character(*), intent(in) :: file
      real(real32), intent(in) :: x(:, :, :)
      integer, intent(in) :: gradients
      real(real32) :: values(size(x))

      type(torch_results) :: results
      real(real32), pointer :: found(:, :, :)

      call python%call("plain", [torch_in(file), torch_in(x), torch_in(gradients)], results)
      call results%to_array(1, found)
      values = reshape(found, [size(found)])
   end function plain

   subroutine on_each_path(file, x, expected, backend)
      character(*), intent(in) :: file, backend
      real(real32), intent(in) :: x(:, :, :), expected(:, 0:)

      type(torch_module) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: given, tensor
      real(real32) :: y(size(x, 1), size(x, 2), size(x, 3))
      integer :: step

      call model%load(file, backend=backend)
      do step = 1, 6  ! beyond the calls after which a model is frozen, and modes by turns
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(same(y, expected(:, 1)), file // ", " // backend // ": on")
         call scope%begin()
         call scope%no_grad()
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(same(y, expected(:, 0)), file // ", " // backend // ": off")
         call given%from_array(x)
         call model%forward([given%arg()], tensor)
         call tensor%copy_to(torch_out(y))
         call expect(same(y, expected(:, 0)), file // ", " // backend // ": off, tensors")
         call scope%enable_grad()
         call model%forward([given%arg()], tensor)
         call tensor%copy_to(torch_out(y))
         call expect(same(y, expected(:, 1)), file // ", " // backend // ": on, tensors")
         call scope%end()
      end do
      call model%load(file, torch_use_inference_mode, backend=backend)
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(same(y, expected(:, 0)), file // ", " // backend // ": inference mode")
   end subroutine on_each_path

   subroutine by_a_script(file, x, expected, record)
      character(*), intent(in) :: file
      real(real32), intent(in) :: x(:, :, :), expected(:, 0:)
      logical, intent(in) :: record

      type(torch_pymodule) :: model
      type(torch_scope) :: scope
      real(real32) :: y(size(x, 1), size(x, 2), size(x, 3))
      integer :: step

      call model%load(script("gradient_modes.py"), config=[torch_in("file", file)], record=record)
      do step = 1, 9
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(same(y, expected(:, 1)), file // ", a script: on")
      end do
      call scope%begin()
      call scope%no_grad()
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(same(y, expected(:, 0)), file // ", a script: off")
      call scope%end()
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(same(y, expected(:, 1)), file // ", a script: on again")
   end subroutine by_a_script

   logical function same(y, expected)
      real(real32), intent(in) :: y(:, :, :), expected(:)

      same = all(transfer(y, [0_int32]) == transfer(expected, [0_int32]))
   end function same
end program test_gradient_modes
