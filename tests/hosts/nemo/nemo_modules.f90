! SPDX-License-Identifier: MIT
!> What infmod uses of NEMO 4.2, under NEMO's names: its sub-domains with halos, its control variables, its exchanges.
!> NEMO is not here. These are written for the test, over the MPI of the program.
module par_oce
   use, intrinsic :: iso_fortran_env, only : real64
   implicit none
   public

   integer, parameter :: wp = real64
   integer, parameter :: jpk = 5, jpt = 3, nn_hls = 2
   integer, parameter :: Ni0glo = 43, Nj0glo = 35
   integer :: jpi, jpj, Nis0, Nie0, Njs0, Nje0
   logical :: l_Iperio, l_Jperio = .false., l_NFold = .false.
   character(1) :: c_NFtype = "T"
end module par_oce

module dom_oce
   use par_oce
   implicit none
   public

   logical :: ln_tile = .false.
   real(wp) :: rn_Dt = 1800
   real(wp), allocatable :: umask(:, :, :), vmask(:, :, :)
   !> From indices of this rank to those of the domain without halos, from 1 on
   integer, allocatable :: mig0(:), mjg0(:)
end module dom_oce

module in_out_manager
   use, intrinsic :: iso_fortran_env, only : output_unit
   implicit none
   public

   character(:), allocatable :: numnam_ref, numnam_cfg
   integer :: numond, numout = output_unit
   logical :: lwp = .false., lwm = .false., ln_timing = .true., ln_rstart = .false.
   integer :: nit000 = 1, nitrst = huge(1)
end module in_out_manager

module iom
   use par_oce, only : wp
   implicit none
   private
   public :: iom_put

   integer, public :: fields_put = 0

contains

   subroutine iom_put(name, field)
      character(*), intent(in) :: name
      real(wp), intent(in) :: field(:, :)

      if (len(name) > 0 .and. size(field) > 0) fields_put = fields_put + 1
   end subroutine iom_put
end module iom

module timing
   implicit none
   private
   public :: timing_start, timing_stop

   integer, public :: timers_running = 0

contains

   subroutine timing_start(name)
      character(*), intent(in) :: name

      if (len(name) > 0) timers_running = timers_running + 1
   end subroutine timing_start

   subroutine timing_stop(name)
      character(*), intent(in) :: name

      if (len(name) > 0) timers_running = timers_running - 1
   end subroutine timing_stop
end module timing

module lib_mpp
   use, intrinsic :: iso_fortran_env, only : error_unit
   use mpi
   implicit none
   private
   public :: ctl_nam, ctl_stop

   integer, public :: mpi_comm_oce
   !> What the last ctl_stop said, where the test expects one: NEMO's ends the program
   character(:), allocatable, public :: stopped
   logical, public :: stop_is_expected = .false.

contains

   subroutine ctl_stop(cd1, cd2)
      character(*), intent(in) :: cd1
      character(*), intent(in), optional :: cd2

      integer :: ierr

      stopped = cd1
      if (present(cd2)) stopped = cd2
      if (stop_is_expected) return
      write (error_unit, "(a)") stopped
      call MPI_Abort(mpi_comm_oce, 1, ierr)
   end subroutine ctl_stop

   subroutine ctl_nam(kios, cdnam)
      integer, intent(in) :: kios
      character(*), intent(in) :: cdnam

      write (error_unit, *) "IOSTAT", kios
      call ctl_stop("STOP", cdnam)
   end subroutine ctl_nam
end module lib_mpp

module lbclnk
   use mpi
   use par_oce, only : wp, jpi, jpj, jpk, nn_hls
   use lib_mpp, only : mpi_comm_oce
   implicit none
   private
   public :: lbc_lnk

   !> Ranks, or MPI_PROC_NULL
   integer, public :: west, east, south, north

contains

   subroutine lbc_lnk(cdname, pt1, cdna1, psgn1, pt2, cdna2, psgn2)
      character(*), intent(in) :: cdname, cdna1, cdna2
      real(wp), intent(inout) :: pt1(:, :, :), pt2(:, :, :)
      real(wp), intent(in) :: psgn1, psgn2

      if (len(cdname) == 0 .or. cdna1 /= "U" .or. cdna2 /= "V" .or. psgn1 > 0 .or. psgn2 > 0) error stop "lbc_lnk"
      call fill(pt1)
      call fill(pt2)
   end subroutine lbc_lnk

   subroutine fill(field)
      real(wp), intent(inout) :: field(:, :, :)

      integer, parameter :: h = nn_hls

      call move(field(jpi - 2*h + 1:jpi - h, :, :), east, field(:h, :, :), west)
      call move(field(h + 1:2*h, :, :), west, field(jpi - h + 1:, :, :), east)
      call move(field(:, jpj - 2*h + 1:jpj - h, :), north, field(:, :h, :), south)
      call move(field(:, h + 1:2*h, :), south, field(:, jpj - h + 1:, :), north)
   end subroutine fill

   subroutine move(sent, target, received, source)
      real(wp), intent(in) :: sent(:, :, :)
      integer, intent(in) :: target, source
      real(wp), intent(inout) :: received(:, :, :)

      real(wp) :: there(size(sent)), here(size(received))
      integer :: ierr

      there = reshape(sent, [size(sent)])
      call MPI_Sendrecv(there, size(there), MPI_DOUBLE_PRECISION, target, 0, here, size(here), MPI_DOUBLE_PRECISION, &
         source, 0, mpi_comm_oce, MPI_STATUS_IGNORE, ierr)
      if (source /= MPI_PROC_NULL) received = reshape(here, shape(received))
   end subroutine move
end module lbclnk
