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

contains

   !> Script, output directory, and any of seeds, steps, device and picture as a namelist: "seeds=1 picture=F"
   function read_options() result(chosen)
      type(options) :: chosen

      character(len=4096) :: words(3)
      character(len=256) :: reason
      character(len=32) :: device
      integer :: i, stat, seeds, steps
      logical :: picture
      namelist /choice/ seeds, steps, device, picture

      do i = 1, size(words)
         call get_command_argument(i, words(i))
      end do
      seeds = chosen%seeds
      steps = chosen%steps
      device = "cpu"
      reason = ""
      picture = chosen%picture
      words(3) = "&choice "//trim(words(3))//" /"
      read (words(3), nml=choice, iostat=stat, iomsg=reason)
      if (stat /= 0 .or. words(2) == "" .or. seeds < 1 .or. steps < 1000) then
         write (error_unit, "(a)") "usage: online_closure <closure.py> <output directory> "// &
            "[""seeds=3 steps=12000 device='cpu' picture=T""]: at least 1 seed and 1000 steps", trim(reason)
         stop 2
      end if
      chosen%script = trim(words(1))
      chosen%plot_script = words(1)(:index(words(1), "/", back=.true.))//"plot.py"
      chosen%folder = trim(words(2))
      chosen%seeds = seeds
      chosen%steps = steps
      chosen%device = trim(device)
      chosen%picture = picture
   end function read_options

end module settings
