! SPDX-License-Identifier: MIT
!> Models of a Python script inside NEMO: the module `infmod` of Morays, without OASIS and without ranks of their own.
!>
!> For MY_SRC of a configuration of NEMO 4.2. NEMO calls the four procedures where the patches of Morays call them:
!> inferences_init and _final in nemogcm.F90, inferences_send and _rcv in stpmlf.F90. docs/hosts.md describes it.
!>
!> Which fields go to the script and come back stands in inferences_send. Change it for a model with other ones.
module infmod
   use, intrinsic :: iso_c_binding, only : c_bool
   use ftn_pytorch, only : ftn_pytorch_set_host, torch_in, torch_out, torch_pymodule, FTN_PYTORCH_OK
   use dom_oce
   use in_out_manager
   use iom
   use lbclnk
   use lib_mpp
   use timing
   implicit none
   private

   public :: inferences_init, inferences_send, inferences_rcv, inferences_final

   !> Activates the module
   logical, public :: ln_inf = .false.
   !> Number of levels on which the model is applied, from the surface on
   integer, public :: nn_lvl = 1
   !> What the script returned in this step, (jpi, jpj, jpk), halos included; 0 below the first nn_lvl levels
   real(wp), public, allocatable, save :: ext_uf(:, :, :), ext_vf(:, :, :)

   !> The script
   character(len=256) :: cn_inf = "main.py"
   !> Folder of checkpoints, written with NEMO's restart files; blank: none. %r is the rank, added if missing
   character(len=256) :: cn_inf_rst = ""

   type(torch_pymodule), save :: script
   !> Time step in which the script was called last
   integer, save :: kt_sent = -huge(kt_sent)

contains

   !> Reads naminf, loads the script, and restores it if NEMO restarts. After the domain and the masks are known.
   subroutine inferences_init
      integer :: ios
      namelist /naminf/ ln_inf, nn_lvl, cn_inf, cn_inf_rst

      read (numnam_ref, naminf, iostat=ios)
      if (ios /= 0) call ctl_nam(ios, "naminf in reference namelist")
      read (numnam_cfg, naminf, iostat=ios)
      if (ios > 0) call ctl_nam(ios, "naminf in configuration namelist")
      if (lwm) write (numond, naminf)
      if (lwp) then
         write (numout, *)
         write (numout, *) "inferences_init : models of a Python script"
         write (numout, *) "~~~~~~~~~~~~~~~"
         write (numout, *) "      Module used             ln_inf     = ", ln_inf
         write (numout, *) "      Levels from the surface nn_lvl     = ", nn_lvl
         write (numout, *) "      Script                  cn_inf     = ", trim(cn_inf)
         write (numout, *) "      Folder of checkpoints   cn_inf_rst = ", trim(cn_inf_rst)
      end if
      if (.not. ln_inf) return
      if (ln_tile) then
         call ctl_stop("STOP", "inferences_init : inferences_rcv is called once for each tile. Set ln_tile = .false.")
         return
      end if
      if (nn_lvl < 1 .or. nn_lvl > jpk) then
         call ctl_stop("STOP", "inferences_init : nn_lvl must be 1 to jpk")
         return
      end if
      if (index(cn_inf_rst, "%r") == 0 .and. cn_inf_rst /= "") cn_inf_rst = trim(cn_inf_rst) // "/rank%r"
      allocate (ext_uf(jpi, jpj, jpk), ext_vf(jpi, jpj, jpk), source=0.0_wp)
      call load
   end subroutine inferences_init

   subroutine load
      integer :: stat
      integer, target :: cells(2), first(2), all_cells(2)
      logical(c_bool), target :: is_periodic(2)
      character(len=:), allocatable :: errmsg, fold

      fold = ""
      if (l_NFold) fold = c_NFtype
      ! C order, from 0 on, as Exchange of ftn_pytorch.halo takes them; variables, since a description keeps an address
      cells = [Nje0 - Njs0 + 1, Nie0 - Nis0 + 1]
      first = [mjg0(Njs0) - 1, mig0(Nis0) - 1]
      all_cells = [Nj0glo, Ni0glo]
      is_periodic = logical([l_Jperio, l_Iperio], c_bool)
      call ftn_pytorch_set_host([torch_in("shape", cells), torch_in("start", first), torch_in("extent", all_cells), &
         torch_in("periodic", is_periodic), torch_in("fold", fold), torch_in("dt", rn_Dt)], &
         stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) then
         call script%load(trim(cn_inf), communicator=mpi_comm_oce, layout="same", stat=stat, errmsg=errmsg)
      end if
      if (stat == FTN_PYTORCH_OK .and. ln_rstart .and. cn_inf_rst /= "") then
         call script%restore(trim(cn_inf_rst), stat=stat, errmsg=errmsg)
      end if
      if (stat /= FTN_PYTORCH_OK) call ctl_stop("STOP", "inferences_init : " // errmsg)
   end subroutine load

   !> Calls the script with the fields of the time level before, and keeps what it returns. Outside of NEMO's tiles.
   subroutine inferences_send(kt, Kbb, puu, pvv)
      !> Time step
      integer, intent(in) :: kt
      !> Index of the time level before
      integer, intent(in) :: Kbb
      !> Horizontal velocities, m/s
      real(wp), intent(inout) :: puu(jpi, jpj, jpk, jpt), pvv(jpi, jpj, jpk, jpt)

      integer :: stat
      character(len=:), allocatable :: errmsg

      if (.not. ln_inf) return
      if (ln_timing) call timing_start("inferences")
      call ftn_pytorch_set_host([torch_in("kt", kt), torch_in("time", real(kt - nit000, wp)*rn_Dt)], &
         stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) then
         ! sections: the script gets the cells that this rank owns, in NEMO's own memory
         associate (u => puu(Nis0:Nie0, Njs0:Nje0, :nn_lvl, Kbb), v => pvv(Nis0:Nie0, Njs0:Nje0, :nn_lvl, Kbb), &
            mask_u => umask(Nis0:Nie0, Njs0:Nje0, :nn_lvl), mask_v => vmask(Nis0:Nie0, Njs0:Nje0, :nn_lvl), &
            u_f => ext_uf(Nis0:Nie0, Njs0:Nje0, :nn_lvl), v_f => ext_vf(Nis0:Nie0, Njs0:Nje0, :nn_lvl))
            call script%call("inferences", [torch_in("u", u), torch_in("v", v), torch_in("mask_u", mask_u), &
               torch_in("mask_v", mask_v)], [torch_out("u_f", u_f), torch_out("v_f", v_f)], stat=stat, errmsg=errmsg)
         end associate
      end if
      if (stat == FTN_PYTORCH_OK .and. kt == nitrst .and. cn_inf_rst /= "") then
         call script%checkpoint(trim(cn_inf_rst), step=kt, stat=stat, errmsg=errmsg)
      end if
      if (stat /= FTN_PYTORCH_OK) call ctl_stop("STOP", "inferences_send : " // errmsg)
      kt_sent = kt
      call lbc_lnk("infmod", ext_uf, "U", -1.0_wp, ext_vf, "V", -1.0_wp)
      if (ln_timing) call timing_stop("inferences")
   end subroutine inferences_send

   !> Adds what the script returned to the right-hand side of the momentum equations.
   subroutine inferences_rcv(kt, puu, pvv, Krhs)
      !> Time step
      integer, intent(in) :: kt
      !> Index of the right-hand side, m/s2
      integer, intent(in) :: Krhs
      !> Horizontal velocities and their tendencies
      real(wp), intent(inout) :: puu(jpi, jpj, jpk, jpt), pvv(jpi, jpj, jpk, jpt)

      if (.not. ln_inf) return
      if (kt /= kt_sent) then
         call ctl_stop("STOP", "inferences_rcv : there was no inferences_send in this step")
         return
      end if
      call iom_put("ext_uf", ext_uf(:, :, 1))
      call iom_put("ext_vf", ext_vf(:, :, 1))
      puu(:, :, :nn_lvl, Krhs) = puu(:, :, :nn_lvl, Krhs) + ext_uf(:, :, :nn_lvl)
      pvv(:, :, :nn_lvl, Krhs) = pvv(:, :, :nn_lvl, Krhs) + ext_vf(:, :, :nn_lvl)
   end subroutine inferences_rcv

   !> Frees the script and the fields. Before MPI ends.
   subroutine inferences_final
      if (.not. ln_inf) return
      call script%free()
      deallocate (ext_uf, ext_vf)
   end subroutine inferences_final

end module infmod
