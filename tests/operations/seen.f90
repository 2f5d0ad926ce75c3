! SPDX-License-Identifier: MIT
!> What an operation works on and what is written of it: a line "theme | name | status | arrays that it changed, with a
!> digest of their bits" in the file "seen" of a folder, messages in its file "said".
module seen
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use ftn_pytorch
   implicit none
   public

   integer, parameter :: rows = 16, arrays = 14
   character(6), parameter :: labels(arrays) = [character(6) :: "x", "y", "xd", "yd", "wide", "narrow", "cells", "z", &
      "whole", "number", "chosen", "first", "second", "loss"]
   type(torch_module), save :: model
   !> Folder of one file on one path, with a slash; what follows is under it
   character(:), allocatable, save :: here
   character(20), save :: file = "", path = "", theme = ""
   character(:), allocatable, save :: errmsg
   integer, save :: stat = 0
   real(real32), target, save :: x(3, rows), y(1, rows), wide(4, rows), narrow(1, 8), cells(3, rows)
   real(real32), target, save :: first, second, loss
   real(real64), target, save :: xd(3, rows), yd(1, rows)
   complex(real32), target, save :: z(3, rows)
   integer(int32), target, save :: whole(3, rows), number, step
   logical(c_bool), target, save :: chosen(rows)
   type(torch_results), save :: results
   integer, private, save :: unit = 0, messages = 0, untouched(arrays)

contains

   !> Begin with a file on a path
   subroutine begin(name_of_file, name_of_path)
      !> In the folder "FILE.PATH"
      character(*), intent(in) :: name_of_file
      !> As options of load choose it
      character(*), intent(in) :: name_of_path

      file = name_of_file
      path = name_of_path
      here = trim(file) // "." // trim(path) // "/"
      open (newunit=unit, file=here // "seen", action="write")
      open (newunit=messages, file=here // "said", action="write")
      call clear()
      untouched = digests()
   end subroutine begin

   subroutine finish()
      close (unit)
      close (messages)
   end subroutine finish

   !> Arrays as at the beginning: what an operation left behind does not reach the next
   subroutine clear()
      integer :: i

      x = reshape([(sin(real(i)), i=1, size(x))], shape(x))
      y = -1
      xd = x
      yd = -1
      wide = 0.5
      narrow = -1
      cells = -1
      z = -1
      whole = 1
      number = -1
      chosen = .false._c_bool
      first = -1
      second = -1
      loss = -1
   end subroutine clear

   !> A line for the last operation, with all that it may have written
   subroutine saw(name)
      !> Of the operation
      character(*), intent(in) :: name

      integer :: now(arrays), i
      character(400) :: changed

      now = digests()
      changed = ""
      do i = 1, arrays
         if (now(i) == untouched(i)) cycle
         write (changed(len_trim(changed) + 1:), "(1x, 2a, z8.8)") trim(labels(i)), "=", now(i)
      end do
      write (unit, "(4a, i0, 2a)") trim(theme), " | ", name, " | ", stat, " |", trim(changed)
      if (stat /= 0) write (messages, "(5a)") trim(theme), " | ", name, " | ", errmsg
      flush (unit)
      call clear()
   end subroutine saw

   !> The same for what a trained model gives, to three digits: the last bits of products of matrices depend on where
   !> weights lie in memory, on some processors
   subroutine saw_near(name)
      !> Of the operation
      character(*), intent(in) :: name

      where (abs(y) < 1000) y = anint(512*y)/512
      call saw(name)
   end subroutine saw_near

   !> A line for what is no status
   subroutine note(name, text)
      !> Of what is told
      character(*), intent(in) :: name
      !> In place of a status
      character(*), intent(in) :: text

      write (unit, "(6a)") trim(theme), " | ", name, " | ", trim(text), " |"
   end subroutine note

   !> The same as saw, with the names of the results
   subroutine saw_results(name)
      !> Of the operation
      character(*), intent(in) :: name

      character(12) :: text
      integer :: i

      call saw(name)
      if (stat /= 0) return
      write (text, "(i0)") results%count()
      call note(name // ", number of results", text)
      do i = 1, results%count()
         write (text, "(i0)") i
         call note(name // ", name of result " // trim(text), results%name(i))
      end do
      call results%free()
   end subroutine saw_results

   !> Settings of torch in this process, which no file may change, and its state of random numbers
   subroutine tell_settings(name)
      !> Of the line
      character(*), intent(in) :: name

      type(torch_pymodule) :: script
      real(real64), target :: settings(17), random
      character(120) :: text

      call script%load("settings.py")
      call script%call("settings", outputs=[torch_out(settings)])
      write (text, "(*(f0.1, 1x))") settings
      call note(name, text)
      call script%call("random", [torch_in(name == "before")], [torch_out(random)])
      write (text, "(f0.0)") random
      call note("random numbers " // name, text)
      call script%free()
   end subroutine tell_settings

   function digests() result(all)
      integer :: all(arrays)

      all = [sum_of(transfer(x, [0])), sum_of(transfer(y, [0])), sum_of(transfer(xd, [0])), sum_of(transfer(yd, [0])), &
         sum_of(transfer(wide, [0])), sum_of(transfer(narrow, [0])), sum_of(transfer(cells, [0])), &
         sum_of(transfer(z, [0])), sum_of(transfer(whole, [0])), number, sum_of(merge(1, 0, chosen)), &
         transfer([first, second, loss], [0])]
   end function digests

   !> Of bits, so that one that differs shows
   pure integer function sum_of(bits) result(total)
      integer, intent(in) :: bits(:)

      integer(int64) :: walked
      integer :: place

      walked = 1
      do place = 1, size(bits)
         walked = modulo(walked*69069_int64 + bits(place), 2147483647_int64)
      end do
      total = int(walked)
   end function sum_of
end module seen
