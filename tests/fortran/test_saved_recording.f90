! SPDX-License-Identifier: MIT
!> A saved recording without Python: the numbers of its script, its checkpoints, its errors.
program test_saved_recording
   use, intrinsic :: iso_fortran_env, only : int32, real32, real64
   use check, only : expect, expect_status, expect_text, finish, is_mapped
   use ftn_pytorch
   implicit none

   integer, parameter :: steps = 20, many = 32, few = 7
   real(real32), target :: x(16, many), t(4, many)
   real(real32) :: losses(steps), predicted(4, many), mean(16), spread(16)
   type(torch_module) :: closure
   integer :: unit

   open (newunit=unit, file="closure.bin", access="stream", form="unformatted", action="read")
   read (unit) x, t, losses, predicted, mean, spread
   close (unit)
   call closure%load("closure.ftr")
   call expect(closure%backend() == "direct", "it runs without Python")
   call expect(closure%has("moments") .and. .not. closure%has("nothing"), "it tells its functions")
   call trains()
   call goes_on_from_checkpoints()
   call has_other_functions()
   call has_numbers()
   call takes_other_memory()
   call gives_its_parameters()
   call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call refuses()
   call finish()

contains

   !> Rows of a step: those of the script in turn
   pure integer function rows_of(step) result(rows)
      integer, intent(in) :: step

      rows = merge(many, few, mod(step, 2) == 1)
   end function rows_of

   subroutine train(model, first, last, what)
      type(torch_module), intent(in) :: model
      integer, intent(in) :: first, last
      character(*), intent(in) :: what

      real(real32), allocatable, target :: batch(:, :), goal(:, :)
      real(real32) :: loss
      integer :: step, rows
      logical :: completed

      do step = first, last
         rows = rows_of(step)
         batch = x(:, 1:rows)
         goal = t(:, 1:rows)
         call model%train_step([torch_in(batch)], [torch_in(goal)], loss, completed)
         call expect(same(loss, losses(step)) .and. .not. completed, what)
      end do
   end subroutine train

   !> Bit for bit
   elemental logical function same(one, other)
      real(real32), intent(in) :: one, other

      same = transfer(one, 1_int32) == transfer(other, 1_int32)
   end function same

   !> Those that its functions compute with
   subroutine gives_its_parameters()
      type(torch_module) :: model
      type(torch_results) :: parameters
      type(torch_tensor) :: bias
      real(real32) :: before(4, many), after(4, many)
      real(real32), pointer :: b(:)
      integer :: last

      call model%load("closure.ftr")
      call expect(model%has("ftn_pytorch_parameters"), "it tells that it has parameters")
      call model%forward([torch_in(x)], [torch_out(before)])
      call model%parameters(parameters)
      last = parameters%count()
      call expect(last >= 2, "its parameters")
      call parameters%get(last, bias)
      call expect(.not. bias%requires_grad(), "torch follows nothing of a recording")
      call bias%to_array(b)
      call expect(size(b) == 4, "the bias of the last layer")
      b = b + 1
      call model%forward([torch_in(x)], [torch_out(after)])
      call expect(any(abs(after - before) > 1e-3), "a prediction uses what was written")
   end subroutine gives_its_parameters

   subroutine trains()
      real(real32) :: y(4, many)
      real(real64) :: wide(4, many)

      call train(closure, 1, steps, "a step gives the loss of the script")
      call closure%forward([torch_in(x)], [torch_out(y)])
      call expect(all(same(y, predicted)), "a prediction is that of the script")
      call closure%forward([torch_in("x", x)], [torch_out(wide)])
      call expect(all(same(real(wide, real32), predicted)), "an input by name, and a wider output")
      call closure%checkpoint("closure_by_program", step=steps)
   end subroutine trains

   subroutine goes_on_from_checkpoints()
      type(torch_module) :: again
      real(real32) :: y(4, many)
      integer :: stat, step
      character(:), allocatable :: errmsg

      call again%load("closure.ftr")
      call train(again, 1, 4, "a second one starts from the file")
      call again%save("closure_after_4.ftr")
      call again%checkpoint("closure_folder", step=4)
      call train(again, 5, 6, "saving changes nothing")
      call again%restore("closure_folder", found=step)
      call expect(step == 4, "restore tells the step")
      call train(again, 5, 9, "it goes on from its checkpoint")
      call again%load("closure_after_4.ftr")
      call train(again, 5, 9, "it goes on from what it saved")
      call again%restore("closure_by_script", found=step)
      call expect(step == steps, "the step of the script")
      call again%forward([torch_in(x)], [torch_out(y)])
      call expect(all(same(y, predicted)), "it goes on from a checkpoint of the script")
      call again%restore("closure.ftr")
      call train(again, 1, 2, "and from the file that it was loaded from")
      call again%reload()
      call train(again, 5, 6, "and from its own file, read again")
      call again%restore("nowhere", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a folder that is not there")
      call again%restore("closure_folder", step=3, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a step that is not there")
      call again%restore("closure_folder/checkpoint-000000000004.ckpt", found=step, step=4)
      call expect(step == 4, "a file of that step")
      call again%restore("closure_folder/checkpoint-000000000004.ckpt", step=3, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a file of another step", errmsg, "holds step 4, and")
      call again%restore("closure.ftr", step=3, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NO_CHECKPOINT, "a file without a step", errmsg, "holds no step")
   end subroutine goes_on_from_checkpoints

   subroutine has_other_functions()
      type(torch_results) :: results
      real(real32) :: first(16), second(16), y(16, many), total
      real(real32), target :: changed(16, many), wide(16, many + 1)
      integer :: stat
      character(:), allocatable :: errmsg

      call closure%call("moments", [torch_in(x), torch_in(2)], results)
      call expect(results%name(1) == "mean" .and. results%name(2) == "spread", "names of results")
      call results%copy_to("mean", torch_out(first))
      call results%copy_to("spread", torch_out(second))
      call expect(all(same(first, mean)) .and. all(same(second, spread)), "results with names")
      call closure%call("moments", [torch_in(x), torch_in(2)], [torch_out(first), torch_out(second)])
      call expect(all(same(first, mean)) .and. all(same(second, spread)), "results in their order")
      call closure%call("parts", [torch_in(x)], [torch_out("count", total), torch_out("large", y)])
      call expect(total == many .and. all(same(y, max(x, 0.0))), "a dict")
      changed = x
      call closure%call("halve", [torch_out(changed)], [torch_out(total)])
      call expect(all(same(changed, x/2)), "an input that is written")
      call closure%call("halve", [torch_in(changed)], [torch_out(total)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "an input that may not be written", errmsg)
      call expect(all(same(changed, x/2)), "and is not")
      changed = x
      call closure%call("shared", [torch_in(changed), torch_out(changed)], [torch_out(total)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_OK, "an array that is written as one of two inputs", errmsg)
      call expect(all(same(changed, x/2)), "it is written once")
      call closure%call("shared", [torch_in(changed), torch_in(changed)], [torch_out(total)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "one that no input may write", errmsg)
      wide = 1
      call closure%call("shared", [torch_in(wide(:, :many)), torch_out(wide(:, 2:))], [torch_out(total)], stat=stat, &
         errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_INPUT_MODIFIED, "one of which a part may be written", errmsg)
      call closure%call("moments", [torch_in(x), torch_in(3)], [torch_out(first), torch_out(second)], stat=stat, &
         errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a number that is another one", errmsg, "scale = 2")
   end subroutine has_other_functions

   subroutine has_numbers()
      real(real64) :: lr
      real(real32) :: narrow
      integer :: stat
      character(:), allocatable :: errmsg

      call closure%get("lr", lr)
      call expect(lr == 1d-2, "a learning rate by its short name")
      call closure%set("optimizer.0.lr", 5e-3)
      call closure%get("lr", narrow)
      call expect(narrow == 5e-3, "and by its whole name, in single precision")
      call closure%set("lr", 1d-2)
      call closure%get("rate", lr, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a name that is not there", errmsg, "optimizer.0.betas.1")
      call closure%set("lr", 0.0, stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "zero", errmsg)
   end subroutine has_numbers

   subroutine takes_other_memory()
      type(torch_module) :: model
      real(real32), target :: wide(32, 2*many), y(4, many)
      real(real64), target :: double(16, many)
      integer :: stat

      wide = 0
      wide(1:16, 1::2) = x
      call closure%forward([torch_in(wide(1:16, 1::2))], [torch_out(y)])
      call expect(all(same(y, predicted)), "a section, which is copied into the strides of the recording")
      double = x
      call closure%forward([torch_in(double)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, "another precision")
      call model%load("closure.ftr", dtype="float32", inputs="copy")
      call model%restore("closure_by_program")
      call model%forward([torch_in(double)], [torch_out(y)])
      call expect(all(same(y, predicted)), "which load converts")
   end subroutine takes_other_memory

   subroutine refuses()
      type(torch_module) :: model
      real(real32), target :: y(4, many), loss
      integer :: stat
      character(:), allocatable :: errmsg

      call closure%forward([torch_in(x(:, 1:9))], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "another number of rows", errmsg)
      call expect_text(errmsg, "x float32 (32, 16); x float32 (7, 16)", "the shapes that the file has")
      call closure%forward([torch_in(x), torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "too many inputs")
      call closure%forward([torch_in("y", x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "a name that no parameter has")
      call closure%call("nothing", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a function that is not there", errmsg)
      call closure%train_step([torch_in(x)], [torch_in(t), torch_in(t)], loss, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "too many targets")
      call closure%create_optimizer_sgd(0.1, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "an optimizer of its own")
      call model%load("closure.ftr", training=.true., stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "training=")
      call model%load("closure_by_program/checkpoint-000000000020.ckpt", stat=stat)
      call expect(stat /= 0, "a checkpoint is no model")
      call closure%restore("closure.bin", stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, "what is no checkpoint")
   end subroutine refuses
end program test_saved_recording
