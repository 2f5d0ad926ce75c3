! SPDX-License-Identifier: MIT
!> Arrays of other kinds and ranks than a file wants, and arrays without elements
module kinds
   use, intrinsic :: iso_fortran_env, only : int8, int64, real32
   use ftn_pytorch
   use seen
   implicit none
   private

   public :: pass_empty_arrays, pass_other_kinds

contains

   subroutine pass_other_kinds()
      integer(int8), target :: bytes(3, rows)
      integer(int64), target :: long(1, rows)
      real(real32), target :: flat(3*rows), deep(3, rows, 1)

      theme = "kinds"
      bytes = 1
      long = -1
      flat = 0.5
      deep = 0.5
      call model%forward([torch_in(bytes)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: int8")
      call model%forward([torch_in(z)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: complex")
      call model%forward([torch_in(chosen)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: logical")
      call model%forward([torch_in(flat)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: one axis")
      call model%forward([torch_in(deep)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: three axes")
      call model%forward([torch_copy(whole)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("input: a copy of integers")
      call model%forward([torch_in(x)], [torch_out(z(1:1, :))], stat=stat, errmsg=errmsg)
      call saw("output: complex for real")
      call model%forward([torch_in(x)], [torch_out(long)], stat=stat, errmsg=errmsg)
      if (any(long /= -1)) number = 1
      call saw("output: int64 for real")
      call model%forward([torch_in(x)], [torch_out(chosen)], stat=stat, errmsg=errmsg)
      call saw("output: logical for real")
      call model%forward([torch_in(x)], [torch_out(y(1, :))], stat=stat, errmsg=errmsg)
      call saw("output: one axis")
      call model%forward([torch_in(x)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("output: a number")
      call model%call("turned", [torch_in(x)], [torch_out(cells)], stat=stat, errmsg=errmsg)
      call saw("output: real for complex")
      call model%call("above", [torch_in(x)], [torch_out(whole(1, :))], stat=stat, errmsg=errmsg)
      call saw("output: integers for logical")
      call model%call("pair", [torch_in(x)], [torch_out(cells), torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("output: an array for a number")
   end subroutine pass_other_kinds

   subroutine pass_empty_arrays()
      theme = "empty"
      call model%call("pair", [torch_in(x(:, 1:0))], [torch_out(cells(:, 1:0)), torch_out(first)], stat=stat, &
         errmsg=errmsg)
      call saw("pair")
      call model%call("pair", [torch_in(x(1:0, 1:0))], [torch_out(cells(1:0, 1:0)), torch_out(first)], stat=stat, &
         errmsg=errmsg)
      call saw("pair: both axes")
      call model%call("shift", [torch_in(x(:, 1:0))], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: an input that may not change")
      call model%call("shift", [torch_out(x(:, 1:0))], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("shift: an input that may")
      call model%call("above", [torch_in(x(:, 1:0))], [torch_out(chosen(1:0))], stat=stat, errmsg=errmsg)
      call saw("above")
      call model%forward([torch_in(x)], [torch_out(y(:, 1:0))], stat=stat, errmsg=errmsg)
      call saw("forward: an output without elements")
      call model%forward([torch_in(x(1:0, :))], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: no features")
   end subroutine pass_empty_arrays
end module kinds
