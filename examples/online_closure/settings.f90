! SPDX-License-Identifier: MIT
!> What the user chooses on the command line, and the times that all parts of the program share.
module settings
   use, intrinsic :: iso_fortran_env, only: error_unit
   use lorenz96, only: dp
   implicit none
   private

   public :: options, read_options
   public :: full_dt, reduced_dt, interval, full_steps, reduced_steps

   !> Time steps of the full and of the reduced model, and the time between samples
   real(dp), parameter :: full_dt = 0.001_dp, reduced_dt = 0.01_dp, interval = 0.05_dp
   !> Time steps between samples
   integer, parameter :: full_steps = nint(interval/full_dt), reduced_steps = nint(interval/reduced_dt)

   type :: options
      !> The closure's script, and the one beside it that draws
      character(len=:), allocatable :: script, plot_script
      !> Where the picture, its data and the trained network go
      character(len=:), allocatable :: folder
      !> Networks that are trained side by side, each from a seed of its own
      integer :: seeds = 3
      !> Adam steps that each of them takes in the first act
      integer :: steps = 12000
      !> Where the networks are: "cpu", "cuda", "cuda:1"
      character(len=:), allocatable :: device
      logical :: picture = .true.
   end type options

   character(len=*), parameter :: usage = &
      "usage: online_closure <closure.py> <output directory> [--seeds n] [--steps n] [--device d] [--no-picture]"

contains

   function read_options() result(chosen)
      type(options) :: chosen

      integer :: i

      if (command_argument_count() < 2) call refuse("script and output directory are missing")
      chosen%script = argument(1)
      chosen%folder = argument(2)
      chosen%plot_script = chosen%script(:index(chosen%script, "/", back=.true.))//"plot.py"
      chosen%device = "cpu"
      i = 3
      do while (i <= command_argument_count())
         select case (argument(i))
         case ("--seeds")
            chosen%seeds = count_after(i, least=1)
         case ("--steps")
            chosen%steps = count_after(i, least=1000)
         case ("--device")
            chosen%device = value_after(i)
         case ("--no-picture")
            chosen%picture = .false.
         case default
            call refuse("unknown argument "//argument(i))
         end select
         i = i + 1
      end do
   end function read_options

   !> What follows argument i, which moves on to it
   function value_after(i) result(text)
      integer, intent(inout) :: i
      character(len=:), allocatable :: text

      i = i + 1
      if (i > command_argument_count()) call refuse(argument(i - 1)//" needs a value")
      text = argument(i)
   end function value_after

   !> The same as a number
   integer function count_after(i, least) result(n)
      integer, intent(inout) :: i
      integer, intent(in) :: least

      character(len=:), allocatable :: text
      integer :: stat

      text = value_after(i)
      read (text, *, iostat=stat) n
      if (stat /= 0) call refuse(argument(i - 1)//" needs a number, not "//text)
      if (n < least) call refuse(argument(i - 1)//" "//text//" is too small")
   end function count_after

   function argument(i) result(text)
      integer, intent(in) :: i
      character(len=:), allocatable :: text

      integer :: length

      call get_command_argument(i, length=length)
      allocate (character(len=length) :: text)
      call get_command_argument(i, text)
   end function argument

   subroutine refuse(reason)
      character(len=*), intent(in) :: reason

      write (error_unit, "(a)") "online_closure: "//reason, usage
      stop 2
   end subroutine refuse

end module settings
