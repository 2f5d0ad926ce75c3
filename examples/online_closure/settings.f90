! SPDX-License-Identifier: MIT
!> What the user chooses on the command line, and the times that all parts of the program share.
module settings
   use, intrinsic :: iso_fortran_env, only: error_unit
   use lorenz96, only: dp
   implicit none
   private

   public :: read_options
   public :: full_dt, reduced_dt, interval, full_steps, reduced_steps

   !> Time steps of the full and of the reduced model, and the time between samples
   real(dp), parameter :: full_dt = 0.001_dp, reduced_dt = 0.01_dp, interval = 0.05_dp
   !> Time steps between samples
   integer, parameter :: full_steps = nint(interval/full_dt), reduced_steps = nint(interval/reduced_dt)

   !> The closure's script, and where the pictures, their data and the trained networks go
   character(len=:), allocatable, protected, public :: script, folder
   !> Networks that are trained side by side in the first act, and Adam steps that each of them takes
   integer, protected, public :: seeds = 3, steps = 12000
   !> Where the networks are: "cpu", "cuda", "cuda:1"
   character(len=32), protected, public :: device = "cpu"
   logical, protected, public :: picture = .true.

contains

   !> Script, output directory, and any of seeds, steps, device and picture as a namelist: "seeds=1 picture=F"
   subroutine read_options()
      character(len=4096) :: words(3)
      character(len=256) :: reason
      integer :: i, stat
      namelist /choice/ seeds, steps, device, picture

      do i = 1, size(words)
         call get_command_argument(i, words(i))
      end do
      reason = ""
      words(3) = "&choice "//trim(words(3))//" /"
      read (words(3), nml=choice, iostat=stat, iomsg=reason)
      if (stat /= 0 .or. words(2) == "" .or. seeds < 1 .or. steps < 1000) then
         write (error_unit, "(a)") "usage: online_closure <closure.py> <output directory> "// &
            "[""seeds=3 steps=12000 device='cpu' picture=T""]: at least 1 seed and 1000 steps", trim(reason)
         stop 2
      end if
      script = trim(words(1))
      folder = trim(words(2))
   end subroutine read_options

end module settings
