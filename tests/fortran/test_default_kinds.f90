! SPDX-License-Identifier: MIT
!> Programs and library compiled with other default kinds: stat, flags, indices, logicals and reals still agree.
program test_default_kinds
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   use torch_ftn, only : module_use_inference_mode
   implicit none

   type(torch_pymodule) :: model
   type(torch_module) :: saved
   type(torch_results) :: results
   type(torch_tensor) :: tensor
   type(torch_tensor_wrap) :: list
   character(:), allocatable :: errmsg, text
   real :: x(3), y(3), loss
   real, pointer :: p(:)
   integer :: stat, n, counts(2)
   logical :: done

   call expect(kind(1) == 8 .and. kind(1.0) == 8, "this test needs wide default kinds")
   stat = -1
   call model%load(script("counter.py"), config=[torch_in("step", 2)], stat=stat)
   call expect_status(stat, FTN_PYTORCH_OK, "load")
   x = [1, 2, 3]
   call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
   call expect(stat == 0 .and. all(y == x + 2), "default real arrays")
   done = model%train([torch_in(x)], [torch_in(y)], loss)
   call expect(done .and. loss == 2, "default real loss and default logical")
   call model%call("get", [torch_in("count")], results)
   call results%scalar(1, n)
   call expect(n == 3 .and. results%count() == 1, "default integers")
   call results%scalar(2, n, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "status", errmsg, "result 2")
   text = results%name(2**32 + 1, stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "an index that 32 bits cannot hold")
   call results%get(2**32 + 1, tensor, stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_RESULT_NAME, "a key that 32 bits cannot hold")
   call model%load(script("look.py"))
   counts = [3, 4]
   call model%call("value", [torch_in(counts)], results)
   call results%scalar(1, text, stat=stat)
   call expect(stat /= 0, "an array is no text")
   done = .false.
   call model%call("value", [torch_in(.true.)], [torch_out(done)])
   call expect(done, "default logical scalars")
   call list%create()
   call list%add_array(x)
   call list%add_scalar(2)
   call list%add_scalar(.true.)
   call list%clear()
   call list%add_array(x)
   call model%forward(list, tensor)
   call tensor%to_array(p)
   call expect(all(p == 2*x) .and. all(tensor%shape() == [3]), "default real pointers")
   call saved%load("no_such_model.pt", module_use_inference_mode, stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_FILE, "flags")
   call saved%load("no_such_model.pt", 2**32 + module_use_inference_mode, stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "flags that 32 bits cannot hold")
   call ftn_pytorch_set_threads(1, stat)
   call expect_status(stat, FTN_PYTORCH_OK, "threads")
   call finish()
end program test_default_kinds
