! SPDX-License-Identifier: MIT
!> What a script may know of ICON, by ftn_pytorch.host(): time, domain, and the cells of this rank.
!>
!>    always           time, entry_point, domain, dt (s), options
!>    of the run       domains, restart, exp_start, exp_stop, run_start, run_stop
!>    of the domain    clon, clat (rad), area (m2), owned: (blocks, cells); hhl (m): (blocks, levels + 1, cells), where
!>                     ICON has it; glb_index: (cells of this rank)
module comin_told
   use, intrinsic :: iso_c_binding, only : c_bool
   use comin_plugin_interface, only : comin_callback_get_ep_name, comin_current_get_datetime, comin_current_get_ep, &
      comin_descrdata_get_cell_npromz, comin_descrdata_get_domain, comin_descrdata_get_global, &
      comin_descrdata_get_simulation_interval, comin_descrdata_get_timesteplength, t_comin_descrdata_domain, &
      t_comin_descrdata_global, t_comin_descrdata_simulation_interval
   use ftn_pytorch, only : ftn_pytorch_set_host, torch_arg, torch_in, FTN_PYTORCH_OK
   implicit none
   private

   public :: tell_all, tell_call

   !> What was told last; 0: nothing yet
   integer, save :: domain_told = 0

contains

   !> Before a script is loaded: the run, and the first domain
   subroutine tell_all(options, stat, errmsg)
      !> What the namelist has for the script
      character(*), intent(in) :: options
      !> FTN_PYTORCH_OK or what failed
      integer, intent(out) :: stat
      !> Its text
      character(:), allocatable, intent(out) :: errmsg

      type(t_comin_descrdata_global), pointer :: global
      type(t_comin_descrdata_simulation_interval), pointer :: interval

      global => comin_descrdata_get_global()
      interval => comin_descrdata_get_simulation_interval()
      call ftn_pytorch_set_host([torch_in("domains", global%n_dom), torch_in("restart", global%lrestartrun), &
         torch_in("exp_start", interval%exp_start), torch_in("exp_stop", interval%exp_stop), &
         torch_in("run_start", interval%run_start), torch_in("run_stop", interval%run_stop)], stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) call tell_call(1, options, stat, errmsg)
   end subroutine tell_all

   !> Before functions of a script are called
   subroutine tell_call(domain, options, stat, errmsg)
      !> From 1 on
      integer, intent(in) :: domain
      !> What the namelist has for the script
      character(*), intent(in) :: options
      !> FTN_PYTORCH_OK or what failed
      integer, intent(out) :: stat
      !> Its text
      character(:), allocatable, intent(out) :: errmsg

      character(:), allocatable :: time, name

      stat = FTN_PYTORCH_OK
      if (domain /= domain_told) call tell_domain(domain, stat, errmsg)
      if (stat /= FTN_PYTORCH_OK) return
      domain_told = domain
      call comin_current_get_datetime(time)
      call comin_callback_get_ep_name(comin_current_get_ep(), name)
      call ftn_pytorch_set_host([torch_in("time", time), torch_in("entry_point", name), torch_in("domain", domain), &
         torch_in("dt", comin_descrdata_get_timesteplength(domain)), torch_in("options", options)], stat=stat, &
         errmsg=errmsg)
   end subroutine tell_call

   subroutine tell_domain(domain, stat, errmsg)
      !> From 1 on
      integer, intent(in) :: domain
      !> FTN_PYTORCH_OK or what failed
      integer, intent(out) :: stat
      !> Its text
      character(:), allocatable, intent(out) :: errmsg

      type(t_comin_descrdata_domain), pointer :: patch
      type(torch_arg), allocatable, target :: values(:)
      logical(c_bool), allocatable, target :: owned(:, :)

      patch => comin_descrdata_get_domain(domain)
      associate (cells => patch%cells)
         owned = logical(cells%decomp_domain == 0, c_bool)
         ! the last block is padded, and the padding looks owned
         owned(comin_descrdata_get_cell_npromz(domain) + 1:, cells%nblks) = .false.
         values = [torch_in("clon", cells%clon), torch_in("clat", cells%clat), torch_in("owned", owned), &
            torch_in("glb_index", cells%glb_index)]
         if (associated(cells%area)) values = [values, torch_in("area", cells%area)]
         if (allocated(cells%hhl)) values = [values, torch_in("hhl", cells%hhl)]
         call ftn_pytorch_set_host(values, stat=stat, errmsg=errmsg)
      end associate
   end subroutine tell_domain
end module comin_told
