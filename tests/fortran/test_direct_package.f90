! SPDX-License-Identifier: MIT
!> Packages of AOTInductor on the direct path, without Python: inputs of three types, by place and by name, entries of a
!> dictionary among them; a dictionary as result; any batch; and what is refused.
program test_direct_package
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish
   use ftn_pytorch
   implicit none

   integer, parameter :: rows = 5
   real(real32) :: x(3, rows), weighted(3, rows), moved(3, rows), picked(3, rows), shift(3)
   integer(int64) :: index(rows)
   logical(c_bool) :: mask(3, rows)
   type(torch_module) :: model
   type(torch_arg) :: inputs(4), outputs(3)

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   shift = [100.0, 200.0, 300.0]
   index = [4, 0, 2, 2, 1]
   mask = x > 0.5
   inputs = [torch_in(x), torch_in("index", index), torch_in("mask", mask), torch_in("shift", shift)]
   outputs = [torch_out("moved", moved), torch_out("weighted", weighted), torch_out("picked", picked)]
   call model%load("package.pt2")
   call expect(model%backend() == "direct", "backend of a package")
   call computes()
   call takes_another_batch()
   call runs_in_the_same_layout()
   call refuses_inputs()
   call is_finished()
   call refuses_files()
   call runs_whatever_it_is_called()
   call finish()

contains

   !> Whether all outputs are what they should be; they are forgotten
   logical function is_right()
      is_right = all(weighted == spread([1.0, 2.0, 3.0], 2, rows)*x) .and. &
         all(moved == x + spread(shift, 2, rows)) .and. all(picked == merge(x(:, index + 1), -x, logical(mask)))
      weighted = 0
      moved = 0
      picked = 0
   end function is_right

   subroutine computes()
      integer :: call_number

      do call_number = 1, 4
         call random_number(x)
         mask = x > 0.5
         call model%forward(inputs, outputs)
         call expect(is_right(), "results by name")
      end do
      call model%forward([torch_in(x), torch_in("mask", mask), torch_in("shift", shift), &
         torch_in("index", index)], outputs)
      call expect(is_right(), "names in another order")
      call model%forward([torch_in(x), torch_in(index), torch_in(mask), torch_in(shift)], outputs)
      call expect(is_right(), "all inputs by position")
   end subroutine computes

   subroutine takes_another_batch()
      type(torch_results) :: results
      real(real32), pointer :: p(:, :)

      call model%forward([torch_in(x(:, 2:4:2)), torch_copy("index", index(3:4)*0), torch_in("mask", mask(:, 2:4:2)), &
         torch_in("shift", shift)], results)
      call expect(results%count() == 3 .and. results%name(1) == "weighted", "results as they are")
      call results%to_array("moved", p)
      call expect(all(shape(p) == [3, 2]) .and. all(p(:, 2) == x(:, 4) + shift), "another batch, strided")
      call results%to_array("picked", p)
      call expect(all(p(:, 2) == merge(x(:, 2), -x(:, 4), logical(mask(:, 4)))), "another batch: where the mask is set")
      ! The stride of its only element, which packages compare with that of a packed array, is one of five rows
      call model%forward([torch_in(x(:, 2:rows:rows)), torch_copy("index", index(3:3)*0), &
         torch_in("mask", mask(:, 2:rows:rows)), torch_in("shift", shift)], results)
      call results%to_array("moved", p)
      call expect(all(shape(p) == [3, 1]) .and. all(p(:, 1) == x(:, 2) + shift), "a batch of one")
   end subroutine takes_another_batch

   subroutine runs_in_the_same_layout()
      type(torch_module) :: same
      real(real32) :: turned(rows, 3), result(rows, 3), by_place(rows, 3), sum(rows, 3)
      logical(c_bool) :: turned_mask(rows, 3)

      turned = transpose(x)
      turned_mask = transpose(mask)
      call same%load("package.pt2", layout="same", backend="direct")
      call same%forward([torch_in(turned), torch_in("index", index), torch_in("mask", turned_mask), &
         torch_in("shift", shift)], &
         [torch_out("picked", result), torch_out("weighted", by_place), torch_out("moved", sum)])
      weighted = transpose(by_place)
      moved = transpose(sum)
      picked = transpose(result)
      call expect(is_right(), "the same axis order")
   end subroutine runs_in_the_same_layout

   subroutine refuses_inputs()
      real(real32) :: wide(4, rows), long(3, rows + 1)
      real(real64) :: double(3, rows)
      integer(int32) :: short(rows)

      wide = 1
      long = 1
      double = 1
      short = 0
      call expect_call([torch_in(double), inputs(2:4)], FTN_PYTORCH_ERR_DTYPE, &
         "input_handles[0]: unmatched dtype", old_torch="on standard error")
      call expect_call([inputs(1), torch_in("index", short), inputs(3:4)], FTN_PYTORCH_ERR_DTYPE, &
         "counted from 0 here (it has 4 inputs: an input without name; index; mask; shift)", &
         old_torch="on standard error")
      call expect_call([torch_in(wide), inputs(2:4)], FTN_PYTORCH_ERR_SHAPE, &
         "input_handles[0]: unmatched dim value at 1, expected: 3, but got: 4", old_torch="on standard error")
      call expect_call([torch_in(long), inputs(2:4)], FTN_PYTORCH_ERR_SHAPE, "expected size", &
         old_torch="on standard error")
      call expect_call(inputs(1:3), FTN_PYTORCH_ERR_SIGNATURE, &
         "is called with 3 inputs; it has 4 inputs: an input without name; index; mask; shift")
      call expect_call([inputs, torch_in("fifth", x)], FTN_PYTORCH_ERR_SIGNATURE, &
         "has no input 5 (""fifth""); it has 4 inputs")
      call expect_call([inputs, torch_in(x)], FTN_PYTORCH_ERR_ARGUMENT, &
         "input 5 of ftn_pytorch_forward of package has no name")
      call expect_call([inputs(1:3), torch_in("shaft", shift)], FTN_PYTORCH_ERR_SIGNATURE, "has no input 4 (""shaft"")")
      call expect_call([torch_in(x), torch_in(index), inputs(2:4)], FTN_PYTORCH_ERR_SIGNATURE, "(""index"") of ")
      call expect_call([inputs(1:3), torch_in("shift", 1.0)], FTN_PYTORCH_ERR_SIGNATURE, "is a scalar")
      index(2) = rows
      call expect_call(inputs, FTN_PYTORCH_ERR_PYTHON, "index out of bounds", old_torch="on standard error")
      index(2) = 0
      call model%forward(inputs, outputs)
      call expect(is_right(), "and fitting inputs after all of these")
   end subroutine refuses_inputs

   subroutine is_finished()
      character(:), allocatable :: errmsg
      real(real64) :: loss
      integer :: stat

      call model%create_optimizer_sgd(0.1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package cannot be trained", errmsg)
      call model%train(inputs, [torch_in(x)], loss, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package is not trained")
      call model%save("package_saved.pt2", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package cannot be saved")
      call model%reload()
      call model%forward(inputs, outputs)
      call expect(is_right(), "a package can be read again")
   end subroutine is_finished

   subroutine refuses_files()
      call expect_load("truncated", FTN_PYTORCH_ERR_FORMAT, "package_truncated.pt2")
      call expect_load("instructions", FTN_PYTORCH_ERR_DEVICE, "this one has no AVX4096: compile it again")
      call expect_load("processor", FTN_PYTORCH_ERR_DEVICE, "was compiled for riscv128 processors")
      call expect_load("device", FTN_PYTORCH_ERR_DEVICE, "package_device.pt2")
      call expect_load("torch", FTN_PYTORCH_ERR_FORMAT, "was compiled by torch 1.99.0")
      call expect_load("archive", FTN_PYTORCH_ERR_FORMAT, "archive version 99")
      call expect_load("several", FTN_PYTORCH_ERR_FORMAT, "several models (net, other)")
      call expect_load("library", FTN_PYTORCH_ERR_FORMAT, "compile it again")
   end subroutine refuses_files

   subroutine runs_whatever_it_is_called()
      call model%load("package_renamed.pt2", backend="direct")
      call model%forward(inputs, outputs)
      call expect(is_right(), "a package in which the model has a name of its own")
   end subroutine runs_whatever_it_is_called

   !> A call that fails and leaves the outputs as they were. Before torch 2.13 packages keep some reasons to themselves
   subroutine expect_call(given, status, part, old_torch)
      type(torch_arg), target, intent(in) :: given(:)
      integer, intent(in) :: status
      character(*), intent(in) :: part
      character(*), intent(in), optional :: old_torch

      character(:), allocatable :: errmsg
      integer :: stat
      logical :: is_kept

      errmsg = ""
      call model%forward(given, outputs, stat=stat, errmsg=errmsg)
      is_kept = .false.
      if (present(old_torch)) is_kept = stat == FTN_PYTORCH_ERR_PYTHON .and. index_of(errmsg, old_torch) > 0
      if (.not. is_kept) then
         call expect_status(stat, status, part, errmsg)
         if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, part, part // ": reason")
      end if
      call expect(all(weighted == 0) .and. all(moved == 0) .and. all(picked == 0), part // ": nothing is written")
   end subroutine expect_call

   !> The intrinsic function, whose name is that of an input here
   pure integer function index_of(text, part)
      character(*), intent(in) :: text, part

      intrinsic :: index

      index_of = index(text, part)
   end function index_of

   subroutine expect_load(kind, status, part)
      character(*), intent(in) :: kind, part
      integer, intent(in) :: status

      type(torch_module) :: other
      character(:), allocatable :: errmsg
      integer :: stat

      call other%load("package_" // kind // ".pt2", backend="direct", stat=stat, errmsg=errmsg)
      call expect_status(stat, status, kind, errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, part, kind // ": reason")
   end subroutine expect_load
end program test_direct_package
