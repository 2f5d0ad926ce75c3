! SPDX-License-Identifier: MIT
!> infmod of hosts/nemo in sub-domains as NEMO's: mpirun -n RANKS test_nemo JPNI JPNJ
!>
!> Where JPNI*JPNJ is one more than the ranks, the last sub-domain is land and has no rank. Of the scripts, main.py is
!> that of the example, learning.py trains, and failing.py fails.
program test_nemo
   use mpi
   use check, only : expect, expect_text, finish, path_of => script
   use dom_oce
   use in_out_manager
   use iom, only : fields_put
   use infmod
   use lbclnk, only : east, north, south, west
   use lib_mpp, only : mpi_comm_oce, stop_is_expected, stopped
   use timing, only : timers_running
   implicit none

   integer, parameter :: reach = 7, levels = 3, Nbb = 1, Nnn = 2, Nrhs = 3
   integer :: ierr, rank, ranks, jpni, jpnj
   character(8) :: word
   real(wp), allocatable :: uu(:, :, :, :), vv(:, :, :, :), once(:, :, :)
   logical :: found

   call MPI_Init(ierr)
   mpi_comm_oce = MPI_COMM_WORLD
   call MPI_Comm_rank(mpi_comm_oce, rank, ierr)
   call MPI_Comm_size(mpi_comm_oce, ranks, ierr)
   call get_command_argument(1, word)
   read (word, *) jpni
   call get_command_argument(2, word)
   read (word, *) jpnj
   lwp = rank == 0

   call published_model(.false.)
   call published_model(.true.)
   call restart
   call switched_off
   call refusals

   call MPI_Finalize(ierr)
   call finish()

contains

   !> The forcings are sums of integers over the whole domain, so they must be exact.
   subroutine published_model(is_periodic)
      logical, intent(in) :: is_periodic

      integer :: kt, i, j, k, wrong, changed
      real(wp) :: want_u, want_v

      call decompose(is_periodic)
      call namelist_of("main.py", "")
      call inferences_init
      fields_put = 0
      do kt = 1, 2
         call fields(kt)
         call inferences_send(kt, Nbb, uu, vv)
         uu(:, :, :, Nrhs) = 1
         vv(:, :, :, Nrhs) = 2
         call inferences_rcv(kt, uu, vv, Nrhs)
         wrong = 0
         changed = 0
         do k = 1, jpk
            ! halos included, but for those outside of the domain
            do j = 1, jpj
               do i = 1, jpi
                  if (.not. is_inside(i, j)) cycle
                  want_u = 0
                  want_v = 0
                  if (k <= levels) then
                     want_u = box(2, kt, mig0(i), mjg0(j), k)*mask(mig0(i), mjg0(j))
                     want_v = -box(1, kt, mig0(i), mjg0(j), k)*mask(mig0(i), mjg0(j))
                  end if
                  if (uu(i, j, k, Nrhs) - 1 /= want_u .or. vv(i, j, k, Nrhs) - 2 /= want_v) wrong = wrong + 1
                  if (uu(i, j, k, Nbb) /= velocity(1, kt, mig0(i), mjg0(j), k)) changed = changed + 1
               end do
            end do
         end do
         call expect(wrong == 0, "the forcing of each cell")
         call expect(changed == 0, "inputs are as they were")
      end do
      call expect(fields_put == 4, "both forcings are written in each step")
      call expect(timers_running == 0, "timers")
      call inferences_final
   end subroutine published_model

   !> Four steps in one run, and two and two with NEMO's restart between
   subroutine restart
      character(:), allocatable :: folder

      folder = "checkpoints"
      if (rank == 0) call execute_command_line("rm -rf " // folder)
      call MPI_Barrier(mpi_comm_oce, ierr)
      call decompose(.true.)
      call train(1, 4, .false., "")
      once = ext_uf
      call inferences_final
      call train(1, 2, .false., folder)
      call inferences_final
      inquire (file=folder // "/rank0", exist=found)
      call expect(found, "checkpoints are where the namelist says")
      call train(3, 4, .true., folder)
      call expect(all(once == ext_uf), "a restarted run is the run at one go")
      call expect(any(once /= 0), "it learnt something")
      call inferences_final
      ln_rstart = .false.
      nit000 = 1
      nitrst = huge(1)
   end subroutine restart

   subroutine train(first, last, restarts, folder)
      integer, intent(in) :: first, last
      logical, intent(in) :: restarts
      character(*), intent(in) :: folder

      integer :: kt

      nit000 = first
      nitrst = last
      ln_rstart = restarts
      call namelist_of("learning.py", folder)
      call inferences_init
      do kt = first, last
         call fields(kt)
         call inferences_send(kt, Nbb, uu, vv)
         call inferences_rcv(kt, uu, vv, Nrhs)
      end do
   end subroutine train

   subroutine switched_off
      call namelist_of("nowhere.py", "")
      numnam_cfg = "&naminf ln_inf=.false. /"
      call inferences_init
      uu(:, :, :, Nrhs) = 1
      call inferences_send(1, Nbb, uu, vv)
      call inferences_rcv(1, uu, vv, Nrhs)
      call inferences_final
      call expect(all(uu(:, :, :, Nrhs) >= 1) .and. .not. allocated(ext_uf), "ln_inf=.false. does nothing")
   end subroutine switched_off

   subroutine refusals
      stop_is_expected = .true.

      call namelist_of("nowhere.py", "")
      call inferences_init
      call stopped_by("nowhere.py")
      call inferences_final

      call namelist_of("failing.py", "")
      call inferences_init
      call inferences_send(1, Nbb, uu, vv)
      call stopped_by("ZeroDivisionError")
      call inferences_rcv(2, uu, vv, Nrhs)
      call stopped_by("no inferences_send")
      call inferences_final

      call namelist_of("learning.py", "no_such_folder")
      ln_rstart = .true.
      call inferences_init
      call stopped_by("no_such_folder")
      call inferences_final
      ln_rstart = .false.

      ln_tile = .true.
      call namelist_of("main.py", "")
      call inferences_init
      call stopped_by("ln_tile")
      ln_tile = .false.

      call namelist_of("main.py", "")
      numnam_cfg = "&naminf ln_inf=.true. nn_lvl=6 /"
      call inferences_init
      call stopped_by("nn_lvl")
   end subroutine refusals

   subroutine stopped_by(text)
      character(*), intent(in) :: text

      call expect(allocated(stopped), "a ctl_stop for " // text)
      if (.not. allocated(stopped)) return
      call expect_text(stopped, text, "what ctl_stop says")
      deallocate (stopped)
   end subroutine stopped_by

   subroutine namelist_of(script, folder)
      character(*), intent(in) :: script, folder

      numnam_ref = "&naminf ln_inf=.false. nn_lvl=1 /"
      numnam_cfg = "&naminf ln_inf=.true. nn_lvl=3 cn_inf='" // path_of(script) // &
         "' cn_inf_rst='" // folder // "' /"
   end subroutine namelist_of

   !> Sub-domains of about the same size, with halos on all sides
   subroutine decompose(is_periodic)
      logical, intent(in) :: is_periodic

      integer :: ip, jp, i0, j0, i

      l_Iperio = is_periodic
      ip = mod(rank, jpni)
      jp = rank/jpni
      i0 = ip*Ni0glo/jpni
      j0 = jp*Nj0glo/jpnj
      Nis0 = 1 + nn_hls
      Njs0 = 1 + nn_hls
      Nie0 = nn_hls + (ip + 1)*Ni0glo/jpni - i0
      Nje0 = nn_hls + (jp + 1)*Nj0glo/jpnj - j0
      jpi = Nie0 + nn_hls
      jpj = Nje0 + nn_hls
      mig0 = [(i0 + i - nn_hls, i=1, jpi)]
      mjg0 = [(j0 + i - nn_hls, i=1, jpj)]
      west = rank_at(ip - 1, jp)
      east = rank_at(ip + 1, jp)
      south = rank_at(ip, jp - 1)
      north = rank_at(ip, jp + 1)
      if (allocated(uu)) deallocate (uu, vv, umask, vmask)
      allocate (uu(jpi, jpj, jpk, jpt), vv(jpi, jpj, jpk, jpt), source=0.0_wp)
      allocate (umask(jpi, jpj, jpk), vmask(jpi, jpj, jpk))
      umask = spread(reshape([((mask(mig0(i), mjg0(j0)), i=1, jpi), j0=1, jpj)], [jpi, jpj]), 3, jpk)
      vmask = umask
   end subroutine decompose

   integer function rank_at(ip, jp)
      integer, intent(in) :: ip, jp

      rank_at = MPI_PROC_NULL
      if (jp < 0 .or. jp >= jpnj) return
      if (.not. l_Iperio .and. (ip < 0 .or. ip >= jpni)) return
      rank_at = modulo(ip, jpni) + jp*jpni
      if (rank_at >= ranks) rank_at = MPI_PROC_NULL
   end function rank_at

   subroutine fields(kt)
      integer, intent(in) :: kt

      integer :: i, j, k

      do k = 1, jpk
         do j = 1, jpj
            do i = 1, jpi
               uu(i, j, k, Nbb) = velocity(1, kt, mig0(i), mjg0(j), k)
               vv(i, j, k, Nbb) = velocity(2, kt, mig0(i), mjg0(j), k)
            end do
         end do
      end do
      uu(:, :, :, Nnn) = -1
      vv(:, :, :, Nnn) = -1
   end subroutine fields

   !> An integer for each point of the domain; i, j from 1 on
   real(wp) function velocity(component, kt, i, j, k)
      integer, intent(in) :: component, kt, i, j, k

      velocity = mod(component*modulo(i - 1, Ni0glo) + 3*abs(j) + 5*k + kt, 11)
   end function velocity

   !> 0 in sub-domains without a rank, and on islands
   real(wp) function mask(i, j)
      integer, intent(in) :: i, j

      integer :: column, ip, jp

      mask = 0
      column = i
      if (l_Iperio) column = modulo(i - 1, Ni0glo) + 1
      if (column < 1 .or. column > Ni0glo .or. j < 1 .or. j > Nj0glo) return
      do jp = 0, jpnj - 1
         do ip = 0, jpni - 1
            if (ip + jp*jpni >= ranks) cycle
            if (column > ip*Ni0glo/jpni .and. column <= (ip + 1)*Ni0glo/jpni .and. &
               j > jp*Nj0glo/jpnj .and. j <= (jp + 1)*Nj0glo/jpnj) mask = merge(0, 1, mod(column + 2*j, 13) == 0)
         end do
      end do
   end function mask

   !> Of the ocean around a point
   real(wp) function box(component, kt, i, j, k)
      integer, intent(in) :: component, kt, i, j, k

      integer :: a, b

      box = 0
      do b = j - reach, j + reach
         do a = i - reach, i + reach
            box = box + velocity(component, kt, a, b, k)*mask(a, b)
         end do
      end do
   end function box

   logical function is_inside(i, j)
      integer, intent(in) :: i, j

      logical :: own_row, own_column

      own_column = i >= Nis0 .and. i <= Nie0
      own_row = j >= Njs0 .and. j <= Nje0
      is_inside = (own_row .and. (own_column .or. (i < Nis0 .and. west /= MPI_PROC_NULL) .or. &
         (i > Nie0 .and. east /= MPI_PROC_NULL))) .or. (own_column .and. ((j < Njs0 .and. south /= MPI_PROC_NULL) .or. &
         (j > Nje0 .and. north /= MPI_PROC_NULL)))
   end function is_inside

end program test_nemo
