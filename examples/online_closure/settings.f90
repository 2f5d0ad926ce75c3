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

      character(len=4096) :: value
      integer :: i, stat

      chosen%script = trim(argument(1))
      chosen%folder = trim(argument(2))
      if (chosen%folder == "") call refuse("script and output directory are missing")
      chosen%plot_script = chosen%script(:index(chosen%script, "/", back=.true.))//"plot.py"
      chosen%device = "cpu"
      i = 3
      do while (i <= command_argument_count())
         value = argument(i + 1)
         stat = 0
         select case (argument(i))
         case ("--seeds")
            read (value, *, iostat=stat) chosen%seeds
         case ("--steps")
            read (value, *, iostat=stat) chosen%steps
         case ("--device")
            chosen%device = trim(value)
         case ("--no-picture") ! has no value
            chosen%picture = .false.
            i = i - 1
         case default
            call refuse("unknown argument "//argument(i))
         end select
         if (stat /= 0) call refuse(trim(argument(i))//" needs a number")
         i = i + 2
      end do
      if (chosen%seeds < 1 .or. chosen%steps < 1000) call refuse("at least 1 seed and 1000 steps are needed")
   end function read_options

   function argument(i) result(text)
      integer, intent(in) :: i
      character(len=4096) :: text

      call get_command_argument(i, text)
   end function argument

   subroutine refuse(reason)
      character(len=*), intent(in) :: reason

      write (error_unit, "(a)") "online_closure: "//trim(reason), usage
      stop 2
   end subroutine refuse

end module settings
