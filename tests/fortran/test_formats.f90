! SPDX-License-Identifier: MIT
!> Programs of torch.export and ONNX models: several inputs and outputs of different types, in both layouts, by place
!> and by name; arrays of which the model writes itself, others that are converted, and files that are refused.
program test_formats
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : expect, expect_status, expect_text, finish
   use ftn_pytorch
   implicit none

   integer, parameter :: rows = 5
   real(real32) :: x(3, rows), blended(3, rows), picked(3, rows)
   integer(int64) :: index(rows)
   logical(c_bool) :: mask(3, rows)

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   index = [4, 0, 2, 2, 1]
   mask = x > 0.5
   call runs("blend.pt2", "exported")
   call runs("blend.onnx", "onnx")
   call runs_in_the_same_layout("blend.pt2")
   call runs_in_the_same_layout("blend.onnx")
   call names_outputs_of_onnx()
   call writes_into_arrays_that_move()
   call converts()
   call gives_results()
   call refuses_gradients()
   call refuses()
   call finish()

contains

   !> Whether both outputs are what they should be; they are forgotten
   function is_right() result(right)
      logical :: right

      right = all(blended == merge(2*x, -x, logical(mask))) .and. all(picked == x(:, index + 1))
      blended = 0
      picked = 0
   end function is_right

   subroutine runs(file, backend)
      character(*), intent(in) :: file, backend
      type(torch_module) :: model
      type(torch_arg) :: inputs(3), outputs(2)
      integer :: step

      call model%load(file)
      call expect(model%backend() == backend, file // ": backend")
      inputs = [torch_in(x), torch_in(index), torch_in(mask)]
      outputs = [torch_out(blended), torch_out(picked)]
      do step = 1, 6
         call random_number(x)
         mask = x > 0.5
         call model%forward(inputs, outputs)
         call expect(is_right(), file // ": the same arrays again")
      end do
      call model%forward([torch_in("mask", mask), torch_in("x", x), torch_in("index", index)], outputs)
      call expect(is_right(), file // ": inputs with names")
      call model%forward(inputs, outputs, flags=torch_use_inference_mode)
      call expect(is_right(), file // ": inference mode")
   end subroutine runs

   subroutine runs_in_the_same_layout(file)
      character(*), intent(in) :: file
      type(torch_module) :: model
      real(real32) :: turned(rows, 3), result(rows, 3), rest(rows, 3)
      logical(c_bool) :: turned_mask(rows, 3)
      integer :: step

      call model%load(file, layout="same")
      do step = 1, 5
         call random_number(turned)
         turned_mask = turned < 0.3
         call model%forward([torch_in(turned), torch_in(index), torch_in(turned_mask)], &
            [torch_out(result), torch_out(rest)])
         call expect(all(result == merge(2*turned, -turned, logical(turned_mask))), file // ": layout")
         call expect(all(rest == turned(index + 1, :)), file // ": layout, second output")
      end do
   end subroutine runs_in_the_same_layout

   subroutine names_outputs_of_onnx()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: step, stat

      call model%load("blend.onnx")
      do step = 1, 5
         call model%forward([torch_in(x), torch_in(index), torch_in(mask)], [torch_out("picked", picked), &
            torch_out("blended", blended)])
         call expect(is_right(), "outputs with names, in another order")
      end do
      do step = 1, 5
         call model%forward([torch_in(x), torch_in(index), torch_in(mask)], [torch_out("nothing", picked), &
            torch_out("blended", blended)], stat=stat, errmsg=errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "an output that is not there", errmsg, "blended")
         call expect(all(picked == 0), "an output that is not there: nothing is written")
      end do
   end subroutine names_outputs_of_onnx

   subroutine writes_into_arrays_that_move()
      type(torch_module) :: model
      real(real32), allocatable :: inside(:, :), outside(:, :)
      integer :: step

      call model%load("double.onnx")
      do step = 1, 40
         allocate (inside(3, step), outside(3, step))
         inside = real(step, real32)
         outside = 0
         call model%forward([torch_in(inside)], [torch_out(outside)])
         call expect(all(outside == 2*step), "arrays of another size in each call")
         call model%forward([torch_in(inside)], [torch_out(inside)])
         call expect(all(inside == 2*step), "input and output are the same array")
         call model%forward([torch_in(inside(:, ::2))], [torch_out(outside(:, ::2))])
         call expect(all(outside(:, ::2) == 4*step), "sections")
         deallocate (inside, outside)
      end do
   end subroutine writes_into_arrays_that_move

   subroutine converts()
      type(torch_module) :: model
      real(real64) :: wide(3, rows), result(3, rows)
      integer :: step, stat

      call model%load("double.onnx", dtype="float32")
      do step = 1, 5
         wide = step + 0.5_real64
         call model%forward([torch_in(wide)], [torch_out(result)])
         call expect(all(result == 2*wide), "double precision outside, single precision inside")
      end do
      call model%load("double.onnx")
      call model%forward([torch_in(wide)], [torch_out(result)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "double precision without dtype")
   end subroutine converts

   subroutine gives_results()
      type(torch_module) :: model
      type(torch_results) :: first, second
      real(real32), pointer :: p(:, :), q(:, :)

      call model%load("blend.onnx")
      call model%forward([torch_in(x), torch_in(index), torch_in(mask)], first)
      call first%to_array("picked", p)
      call expect(all(p == x(:, index + 1)), "results by name")
      picked = p
      call random_number(x)
      call model%forward([torch_in(x), torch_in(index), torch_in(mask)], second)
      call second%to_array(2, q)
      call expect(all(q == x(:, index + 1)) .and. all(p == picked), "earlier results stay")
   end subroutine gives_results

   subroutine refuses_gradients()
      type(torch_module) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: tensor
      real(real32), target :: inside(3, rows)
      real(real32) :: outside(3, rows)
      character(:), allocatable :: errmsg
      integer :: stat

      inside = 1
      call model%load("double.onnx")
      call scope%begin()
      call tensor%from_array(inside)
      call tensor%set_requires_grad()
      call model%forward([tensor%arg()], [torch_out(outside)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an input that requires gradients", errmsg)
      call scope%no_grad()
      call model%forward([tensor%arg()], [torch_out(outside)])
      call expect(all(outside == 2), "without gradients")
      call scope%end()
   end subroutine refuses_gradients

   subroutine refuses()
      type(torch_module) :: model
      type(torch_pymodule) :: script
      character(:), allocatable :: errmsg
      real(real32) :: loss
      integer :: stat

      call model%load("cut.onnx", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "a file that is cut off", errmsg, "bytes are missing")
      call model%load("weights.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "parameters without program", errmsg, "torch.load")
      call model%load("weights.pt", weights_only=.false., stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "parameters without program, read all the same")
      call model%load("blend.onnx", compile=.true., stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an ONNX model cannot be compiled")
      call script%load("double.onnx", compile="quick", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an unknown mode of compile", errmsg, "max-autotune")
      call script%load("double.onnx", compile=1, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "compile of another type")
      call expect_text(errmsg, "neither a logical nor a string", "compile of another type: what is wrong")
      call script%load("double.onnx", compile_backend="eager", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "compile_backend without compile")
      call model%load("blend.onnx")
      call model%train([torch_in(x)], [torch_in(x)], loss, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "an ONNX model cannot be trained")
      call model%forward([torch_in(x(1:2, :)), torch_in(index), torch_in(mask)], &
         [torch_out(blended), torch_out(picked)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "an input of another shape", errmsg, "axis 1 has size 2, not 3")
   end subroutine refuses
end program test_formats
