! SPDX-License-Identifier: MIT
!> errmsg holds the whole reason whatever it held before, on every procedure, and keeps its value on success.
program test_errmsg
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: model

   call model%load(script("failing.py"))
   call whatever_it_held_before(10)
   call whatever_it_held_before(200000)
   call keeps_its_value_on_success()
   call alone_or_with_stat()
   call on_every_procedure()
   call finish()

contains

   subroutine whatever_it_held_before(length)
      integer, intent(in) :: length

      character(:), allocatable :: errmsg, expected
      integer :: stat

      call model%forward([torch_in(length)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "exception")
      expected = errmsg
      call expect_text(errmsg, "ValueError: " // repeat("x", length), "errmsg unallocated")
      call expect_text(errmsg, "failing.py", "errmsg unallocated: traceback")
      errmsg = "short"
      call model%forward([torch_in(length)], stat=stat, errmsg=errmsg)
      call expect(errmsg == expected .and. len(errmsg) == len(expected), "errmsg shorter than the reason")
      errmsg = repeat("long ", length)
      call model%forward([torch_in(length)], stat=stat, errmsg=errmsg)
      call expect(errmsg == expected .and. len(errmsg) == len(expected), "errmsg longer than the reason")
      errmsg = ""
      call through_a_procedure(length, errmsg)
      call expect(errmsg == expected .and. len(errmsg) == len(expected), "errmsg of a caller")
   end subroutine whatever_it_held_before

   subroutine through_a_procedure(length, errmsg)
      integer, intent(in) :: length
      character(:), allocatable, intent(inout) :: errmsg

      integer :: stat

      call model%forward([torch_in(length)], stat=stat, errmsg=errmsg)
   end subroutine through_a_procedure

   subroutine keeps_its_value_on_success()
      type(torch_pymodule) :: other
      character(:), allocatable :: errmsg
      integer :: stat

      stat = -1
      call other%load(script("look.py"), stat=stat, errmsg=errmsg)
      call expect(stat == 0 .and. .not. allocated(errmsg), "errmsg stays unallocated on success")
      errmsg = "before"
      stat = -1
      call other%load(script("look.py"), stat=stat, errmsg=errmsg)
      call expect(stat == 0 .and. errmsg == "before", "errmsg keeps its value on success")
   end subroutine keeps_its_value_on_success

   subroutine alone_or_with_stat()
      character(:), allocatable :: errmsg
      integer :: stat

      call model%forward([torch_in(3)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "stat without errmsg")
      call model%call("nobody", stat=stat, errmsg=errmsg)
      call expect(index(errmsg, "ValueError") == 0, "the reason is that of the last failure")
   end subroutine alone_or_with_stat

   !> Subroutines and functions of all types, each with the reason of its own failure
   subroutine on_every_procedure()
      type(torch_pymodule) :: empty
      type(torch_module) :: saved
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      type(torch_arg) :: arg
      character(:), allocatable :: text
      real(real32), pointer :: p(:)
      real(real32) :: loss, x(2)
      logical :: answer
      integer :: number

      x = 0
      answer = empty%has("x", stat=number, errmsg=text)
      call expect_failure("has", number, text)
      text = ""
      call expect(empty%backend(stat=number, errmsg=text) == "", "backend of nothing")
      call expect_failure("backend", number, text)
      call empty%reload(stat=number, errmsg=text)
      call expect_failure("reload", number, text)
      call empty%save("x", stat=number, errmsg=text)
      call expect_failure("save", number, text)
      call empty%restore("x", stat=number, errmsg=text)
      call expect_failure("restore", number, text)
      call empty%load("x.py", stat=number, errmsg=text)
      call expect_failure("load", number, text)
      call empty%forward(list, tensor, stat=number, errmsg=text)
      call expect_failure("forward with a list", number, text)
      call empty%forward([torch_in(x)], [torch_out(x)], stat=number, errmsg=text)
      call expect_failure("forward into outputs", number, text)
      call empty%forward([torch_in(x)], results, stat=number, errmsg=text)
      call expect_failure("forward with results", number, text)
      answer = empty%train(list, tensor, loss, stat=number, errmsg=text)
      call expect_failure("train with a list", number, text)
      answer = empty%train([torch_in(x)], [torch_in(x)], loss, stat=number, errmsg=text)
      call expect_failure("train", number, text)
      call empty%train_step([torch_in(x)], [torch_in(x)], loss, stat=number, errmsg=text)
      call expect_failure("train_step", number, text)
      call empty%call("f", [torch_in(x)], stat=number, errmsg=text)
      call expect_failure("call", number, text)
      call empty%call("f", [torch_in(x)], results, stat=number, errmsg=text)
      call expect_failure("call with results", number, text)
      call empty%call("f", results, stat=number, errmsg=text)
      call expect_failure("call with results only", number, text)
      call saved%train(list, tensor, loss, stat=number, errmsg=text)
      call expect_failure("torch_module%train with a list", number, text)
      call saved%train([torch_in(x)], [torch_in(x)], loss, stat=number, errmsg=text)
      call expect_failure("torch_module%train", number, text)
      call saved%create_optimizer_sgd(0.1, stat=number, errmsg=text)
      call expect_failure("create_optimizer_sgd", number, text)
      call tensor%to_array(p, stat=number, errmsg=text)
      call expect_failure("to_array", number, text)
      nullify (p)
      call tensor%from_array(p, stat=number, errmsg=text)
      call expect_failure("from_array", number, text)
      call expect(size(tensor%shape(stat=number)) == 0 .and. number /= 0, "shape of nothing")
      call expect(tensor%dtype(stat=number, errmsg=text) == "", "dtype of nothing")
      call expect_failure("dtype", number, text)
      call expect(tensor%device(stat=number, errmsg=text) == "", "device of nothing")
      call expect_failure("device", number, text)
      arg = tensor%arg(stat=number, errmsg=text)
      call expect_failure("arg", number, text)
      call list%add_scalar(1, stat=number, errmsg=text)
      call expect_failure("add_scalar", number, text)
      call list%add_scalar("one", stat=number, errmsg=text)
      call expect_failure("add_scalar of a text", number, text)
      call list%add_array(x, stat=number, errmsg=text)
      call expect_failure("add_array", number, text)
      call list%add_array(arg, stat=number, errmsg=text)
      call expect_failure("add_array of a description", number, text)
      call list%add_tensor(tensor, stat=number, errmsg=text)
      call expect_failure("add_tensor", number, text)
      call list%clear(stat=number, errmsg=text)
      call expect_failure("clear", number, text)
      call expect(results%count(stat=number, errmsg=text) == 0, "count of nothing")
      call expect_failure("count", number, text)
      call expect(results%name(1, stat=number, errmsg=text) == "", "name of nothing")
      call expect_failure("name", number, text)
      call results%get(1, tensor, stat=number, errmsg=text)
      call expect_failure("get", number, text)
      call results%to_array(1, p, stat=number, errmsg=text)
      call expect_failure("to_array of results", number, text)
      call results%copy_to(1, x, stat=number, errmsg=text)
      call expect_failure("copy_to", number, text)
      call results%scalar(1, loss, stat=number, errmsg=text)
      call expect_failure("scalar", number, text)
      call results%scalar("name", text, stat=number)
      call expect(number /= 0, "scalar into a text: status")
      call ftn_pytorch_set_threads(0, stat=number, errmsg=text)
      call expect_failure("set_threads", number, text)
   end subroutine on_every_procedure

   !> What failed left a status and a reason behind
   subroutine expect_failure(what, stat, errmsg)
      character(*), intent(in) :: what
      integer, intent(inout) :: stat
      character(:), allocatable, intent(inout) :: errmsg

      call expect(stat > 0 .and. stat <= FTN_PYTORCH_ERR_LIBRARY, what // ": status")
      call expect(allocated(errmsg), what // ": errmsg")
      if (allocated(errmsg)) call expect(len(errmsg) > 10, what // ": reason")
      errmsg = ""
      stat = 0
   end subroutine expect_failure
end program test_errmsg
