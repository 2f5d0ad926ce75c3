! SPDX-License-Identifier: MIT
!> The side of a process that measures, for those in Fortran: see worker.py.
module bench_protocol
   use, intrinsic :: iso_fortran_env, only : compiler_version, int64, output_unit, real64
   use ftn_pytorch, only : ftn_pytorch_version
   implicit none
   private

   public :: now, argument, say_started, next_request, reply_times, reply_unavailable

   !> Of the command line: the word of the next request, 0 if they come from standard input
   integer, save :: place = 0

contains

   !> Nanoseconds since some moment
   integer(int64) function now()
      integer(int64) :: count, rate

      call system_clock(count, rate)
      now = nint(real(count, real64)*(1e9_real64/real(rate, real64)), int64)
   end function now

   !> A word of the command line; stops the program with its usage if there is no such word
   function argument(number, usage) result(text)
      integer, intent(in) :: number
      character(*), intent(in) :: usage
      character(:), allocatable :: text

      integer :: length

      if (number > command_argument_count()) then
         print "(2a)", "usage: ", usage
         stop 2
      end if
      call get_command_argument(number, length=length)
      allocate (character(length) :: text)
      call get_command_argument(number, text)
   end function argument

   !> The first answer
   subroutine say_started(first)
      !> The words of the command line from this one on are the requests, if there are such words
      integer, intent(in) :: first

      if (first <= command_argument_count()) place = first
      print "(4a)", ">> started 0 Fortran ", compiler_version(), ", ftn_pytorch ", ftn_pytorch_version()
      flush (output_unit)
   end subroutine say_started

   !> Take a request: a name and some integers, 0 where there are none. False after the last one
   logical function next_request(name, numbers)
      character(*), intent(out) :: name
      integer, intent(out) :: numbers(:)

      character(256) :: line
      integer :: status, i

      flush (output_unit)
      numbers = 0
      if (place == 0) then
         read (*, "(a)", iostat=status) line
      else
         call get_command_argument(place, line, status=status)
         place = place + 1
      end if
      next_request = status == 0
      if (.not. next_request) return
      read (line, *) name
      do i = 1, size(numbers)
         read (line, *, iostat=status) name, numbers(:i)
         if (status == 0) cycle
         numbers(i:) = 0
         exit
      end do
   end function next_request

   !> Nanoseconds of a call, of each sample
   subroutine reply_times(nanoseconds)
      real(real64), intent(in) :: nanoseconds(:)

      print "(a, *(1x, f0.3))", ">> times", nanoseconds
   end subroutine reply_times

   !> The first line of a reason
   subroutine reply_unavailable(reason)
      character(*), intent(in) :: reason

      character(:), allocatable :: line

      line = reason(:min(len(reason), 400))
      if (index(line, new_line("a")) > 0) line = line(:index(line, new_line("a")) - 1)
      print "(2a)", ">> unavailable ", line
   end subroutine reply_unavailable
end module bench_protocol
