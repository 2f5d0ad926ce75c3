! SPDX-License-Identifier: MIT
!> Predictions, arguments that do not fit, and other functions of a file
module calls
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: call_functions, describe_wrongly, predict

contains

   subroutine predict()
      theme = "forward"
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward")
      call model%forward([torch_in("x", x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: input by name")
      call model%forward([torch_in(x)], [torch_out(yd)], stat=stat, errmsg=errmsg)
      call saw("forward: wider output")
      call model%forward([torch_in(x(:, ::2))], [torch_out(narrow)], stat=stat, errmsg=errmsg)
      call saw("forward: section")
      call model%forward([torch_in(x(:, rows:1:-1))], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: section backwards")
      call model%forward([torch_copy(x(:, rows:1:-1))], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: copy of a section backwards")
      call model%forward([torch_in(x)], [torch_out(y(:, rows:1:-1))], stat=stat, errmsg=errmsg)
      call saw("forward: output backwards")
      call model%forward([torch_in(x(:, 1:0))], [torch_out(y(:, 1:0))], stat=stat, errmsg=errmsg)
      call saw("forward: no samples")
      call model%forward([torch_out(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: input that may change")
      call model%forward([torch_in(x)], results, stat=stat, errmsg=errmsg)
      call saw_results("forward: results")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: again")
   end subroutine predict

   subroutine describe_wrongly()
      type(torch_arg) :: none(0)

      theme = "wrong"
      call model%forward([torch_in(xd)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("real64 for real32")
      call model%forward([torch_in(whole)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("integers for reals")
      call model%forward([torch_in(wide)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("four features for three")
      call model%forward([torch_in(x), torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("two inputs")
      call model%forward(none, [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("no inputs")
      call model%forward([torch_in("nothing", x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("another name")
      call model%forward([torch_in("x", x), torch_in("x", x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("a name twice")
      call model%forward([torch_in(x), torch_in("x", x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("an argument twice")
      call model%forward([torch_in("x", x), torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("a name in front")
      call model%forward([torch_in(1.0)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("a number")
      call model%forward([torch_in("text")], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("a text")
      call model%forward([torch_in(x)], [torch_out(narrow)], stat=stat, errmsg=errmsg)
      call saw("output too small")
      call model%forward([torch_in(x)], [torch_out(number)], stat=stat, errmsg=errmsg)
      call saw("output of integers")
      call model%forward([torch_in(x)], [torch_out(y), torch_out(narrow)], stat=stat, errmsg=errmsg)
      call saw("two outputs")
      call model%forward([torch_in(x)], [torch_out("y", y)], stat=stat, errmsg=errmsg)
      call saw("output by name")
      call model%forward([torch_in(x)], [torch_in(y)], stat=stat, errmsg=errmsg)
      call saw("output that may not change")
      call model%call("nothing", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("no such function")
      call model%call("", [torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("no name")
      call model%call("ftn_pytorch_setup", stat=stat, errmsg=errmsg)
      call saw("setup")
      call model%call("ftn_pytorch_save", [torch_in(here // "by_call")], stat=stat, errmsg=errmsg)
      call saw("save by call")
   end subroutine describe_wrongly

   subroutine call_functions()
      character(5), parameter :: hooks(5) = [character(5) :: "pair", "half", "stats", "shift", "other"]
      integer :: i

      theme = "call"
      do i = 1, size(hooks)
         call note("has " // trim(hooks(i)), merge("yes", "no ", model%has(trim(hooks(i)))))
      end do
      call note("has train", merge("yes", "no ", model%has("ftn_pytorch_train")))
      call note("has save", merge("yes", "no ", model%has("ftn_pytorch_save")))
      call note("has setup", merge("yes", "no ", model%has("ftn_pytorch_setup")))
      call model%call("pair", [torch_in(x)], [torch_out(cells), torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("pair")
      call model%call("pair", [torch_in(x)], [torch_out(cells)], stat=stat, errmsg=errmsg)
      call saw("pair: one output")
      call model%call("half", [torch_in(x)], [torch_out(cells)], stat=stat, errmsg=errmsg)
      call saw("half")
      call model%call("half", [torch_in(x)], [torch_out(whole)], stat=stat, errmsg=errmsg)
      call saw("half: into integers")
      call model%call("stats", [torch_in(x)], [torch_out("spread", second), torch_out("mean", first)], stat=stat, &
         errmsg=errmsg)
      call saw("stats: by name")
      call model%call("stats", [torch_in(x)], [torch_out("mean", first)], stat=stat, errmsg=errmsg)
      call saw("stats: one of two")
      call model%call("stats", [torch_in(x)], [torch_out("mean", first), torch_out("none", second)], stat=stat, &
         errmsg=errmsg)
      call saw("stats: another name")
      call model%call("stats", [torch_in(x)], [torch_out(first), torch_out(second)], stat=stat, errmsg=errmsg)
      call saw("stats: without names")
      call model%call("stats", [torch_in(x)], results, stat=stat, errmsg=errmsg)
      call saw_results("stats: results")
      call model%call("shift", [torch_in(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: an input that may not change")
      call model%call("shift", [torch_out(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: an input that may")
      call model%call("shift", [torch_copy(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: a copy")
      call model%call("shift", [torch_out(x(:, ::2))], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: a section")
      call model%call("gather", [torch_out(x), torch_in(wide(1:3, :))], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("gather: a section that is read")
      call model%call("gather", [torch_out(wide(1:3, :)), torch_in(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("gather: a section that is written")
      call model%call("gather", [torch_out(x), torch_in(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("gather: one array twice")
      call model%call("above", [torch_in(x)], [torch_out(chosen)], stat=stat, errmsg=errmsg)
      if (any(chosen)) number = count(chosen)
      call saw("above: logical results")
      call model%call("turned", [torch_in(x)], [torch_out(z)], stat=stat, errmsg=errmsg)
      call saw("turned: complex results")
      call model%parameters(results, stat=stat, errmsg=errmsg)
      call saw_results("parameters")
   end subroutine call_functions
end module calls
