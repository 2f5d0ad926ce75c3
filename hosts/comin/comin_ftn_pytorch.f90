! SPDX-License-Identifier: MIT
!> A plug-in of ICON ComIn that calls functions of a Python script at ICON's entry points, on ICON's own fields.
!>
!>    &comin_nml
!>      plugin_list(1)%name           = "ftn_pytorch"
!>      plugin_list(1)%plugin_library = "libcomin_ftn_pytorch.so"
!>      plugin_list(1)%options        = "closure.py checkpoints=restart/ml"
!>    /
!>
!> The script's ftn_pytorch_comin() returns lines, see comin_lines. What it may want to know of ICON is told before each
!> call, see comin_told. Everything that fails ends ICON by comin_plugin_finish, with the traceback of the script.
module comin_ftn_pytorch
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : error_unit
   use comin_fields, only : elsewhere, field, find_field, in_of, out_of
   use comin_lines, only : hook, line_of, number_keys, read_line, read_options, script_options
   use comin_plugin_interface, only : comin_callback_register, comin_current_get_domain_id, comin_current_get_ep, &
      comin_current_get_plugin_info, comin_descrdata_get_global, comin_metadata_set, comin_parallel_get_host_mpi_comm, &
      comin_parallel_get_host_mpi_rank, comin_plugin_finish, comin_var_request_add, t_comin_descrdata_global, &
      t_comin_plugin_info, t_comin_var_descriptor, COMIN_DOMAIN_OUTSIDE_LOOP, COMIN_FLAG_READ, COMIN_FLAG_WRITE, &
      COMIN_ZAXIS_2D, EP_ATM_CHECKPOINT_BEFORE, EP_DESTRUCTOR, EP_SECONDARY_CONSTRUCTOR
   use comin_told, only : tell_all, tell_call
   use ftn_pytorch
   implicit none
   private

   public :: comin_main

   !> Fields of a hook in one domain, those that are read before those that are written
   type :: domain_fields
      type(field), allocatable :: reads(:), writes(:)
   end type domain_fields

   !> A hook with its fields
   type :: bound_hook
      type(hook) :: line
      type(domain_fields), allocatable :: domains(:)
   end type bound_hook

   !> One entry of plugin_list
   type :: guest
      type(torch_pymodule) :: script
      type(script_options) :: options
      type(bound_hook), allocatable :: hooks(:)
      character(:), allocatable :: name
   end type guest

   !> By the numbers of ComIn, whose list has so many entries
   type(guest), target, save :: guests(16)

contains

   !> What ComIn calls first: load the script, ask for fields, register the entry points
   subroutine comin_main() bind(c)
      type(t_comin_plugin_info) :: info
      type(t_comin_descrdata_global), pointer :: global
      type(torch_results) :: lines
      type(guest), pointer :: mine
      character(:), allocatable :: errmsg, text
      integer :: stat, i

      call comin_current_get_plugin_info(info)
      if (info%id > size(guests)) call comin_plugin_finish("comin_ftn_pytorch", "there are more than 16 plug-ins")
      mine => guests(info%id)
      mine%name = trim(info%name)
      call read_options(info%options, mine%options, errmsg)
      if (allocated(errmsg)) call give_up(mine, errmsg)
      call ftn_pytorch_init(keep_lock=.not. mine%options%threads, stat=stat, errmsg=errmsg)
      call check(mine, stat, errmsg)
      call tell_all(mine%options%rest, stat, errmsg)
      call check(mine, stat, errmsg)
      call mine%script%load(mine%options%script, communicator=comin_parallel_get_host_mpi_comm(), &
         dtype=mine%options%dtype, device=mine%options%device, stat=stat, errmsg=errmsg)
      call check(mine, stat, errmsg)
      if (.not. mine%script%has("ftn_pytorch_comin")) then
         call give_up(mine, mine%options%script // " defines no ftn_pytorch_comin, which tells what is called where")
      end if
      call mine%script%call("ftn_pytorch_comin", lines, stat=stat, errmsg=errmsg)
      call check(mine, stat, errmsg)
      allocate (mine%hooks(0))
      do i = 1, lines%count()
         call lines%scalar(i, text, stat=stat, errmsg=errmsg)
         call check(mine, stat, errmsg)
         call follow(mine, text)
      end do
      call lines%free()
      global => comin_descrdata_get_global()
      call comin_callback_register(EP_SECONDARY_CONSTRUCTOR, find_fields)
      if (allocated(mine%options%checkpoints) .and. .not. is_registered(mine, EP_ATM_CHECKPOINT_BEFORE)) then
         call comin_callback_register(EP_ATM_CHECKPOINT_BEFORE, call_hooks)
      end if
      call comin_callback_register(EP_DESTRUCTOR, end_script)
   end subroutine comin_main

   !> Do what a line of the script says
   subroutine follow(mine, text)
      !> Entry of plugin_list
      type(guest), intent(inout) :: mine
      !> The line
      character(*), intent(in) :: text

      type(line_of) :: line
      type(t_comin_var_descriptor) :: added
      type(bound_hook) :: made
      character(:), allocatable :: errmsg
      integer :: i

      call read_line(text, line, errmsg)
      if (allocated(errmsg)) call give_up(mine, "line """ // text // """ of " // mine%options%script // ": " // errmsg)
      if (line%adds) then
         ! in all domains: ComIn takes tracers in no other way
         added%id = COMIN_DOMAIN_OUTSIDE_LOOP
         added%name = line%name
         call comin_var_request_add(added, .false.)
         do i = 1, size(line%metadata)
            call set_metadata(added, trim(line%metadata(i)))
         end do
      else
         if (.not. mine%script%has(trim(line%hook%function))) then
            call give_up(mine, "line """ // text // """: " // mine%options%script // " defines no " &
               // line%hook%function)
         end if
         if (.not. is_registered(mine, line%hook%entry_point)) then
            call comin_callback_register(line%hook%entry_point, call_hooks)
         end if
         made%line = line%hook
         mine%hooks = [mine%hooks, made]
      end if
   end subroutine follow

   !> Metadata of a new field, by a word that read_line has looked at
   subroutine set_metadata(added, word)
      !> The field
      type(t_comin_var_descriptor), intent(in) :: added
      !> 2d, KEY, KEY=INTEGER or KEY=TEXT
      character(*), intent(in) :: word

      integer :: cut, number

      cut = index(word // "=", "=")
      if (word == "2d") then
         call comin_metadata_set(added, "zaxis_id", COMIN_ZAXIS_2D)
      else if (cut > len(word)) then
         call comin_metadata_set(added, word, .true.)
      else if (any(number_keys == word(:cut - 1))) then
         read (word(cut + 1:), *) number
         call comin_metadata_set(added, word(:cut - 1), number)
      else
         call comin_metadata_set(added, word(:cut - 1), word(cut + 1:))
      end if
   end subroutine set_metadata

   !> Whether a line names this entry point: ComIn crashes where one is registered twice
   function is_registered(mine, entry_point) result(is)
      !> Entry of plugin_list
      type(guest), intent(in) :: mine
      !> By its number
      integer, intent(in) :: entry_point
      logical :: is

      is = any(mine%hooks%line%entry_point == entry_point)
   end function is_registered

   !> All fields of ICON are there now
   subroutine find_fields() bind(c)
      type(t_comin_descrdata_global), pointer :: global
      type(guest), pointer :: mine
      character(:), allocatable :: errmsg
      integer :: found, i, j, stat

      mine => this_one()
      global => comin_descrdata_get_global()
      do i = 1, size(mine%hooks)
         associate (this => mine%hooks(i))
            allocate (this%domains(global%n_dom))
            do j = 1, global%n_dom
               call find(mine, this%line, this%line%reads, j, this%domains(j)%reads)
               call find(mine, this%line, this%line%writes, j, this%domains(j)%writes)
            end do
         end associate
      end do
      if (.not. (global%lrestartrun .and. allocated(mine%options%checkpoints))) return
      call mine%script%restore(mine%options%checkpoints, found=found, stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_ERR_NO_CHECKPOINT) then
         if (comin_parallel_get_host_mpi_rank() == 0) write (error_unit, "(a)") &
            "comin_ftn_pytorch: ICON restarts, and " // mine%options%script // " begins anew: " // errmsg
      else
         call check(mine, stat, errmsg)
      end if
   end subroutine find_fields

   !> Fields by their names in one domain
   subroutine find(mine, line, names, domain, found)
      !> Entry of plugin_list
      type(guest), intent(in) :: mine
      !> What asks for them
      type(hook), intent(in) :: line
      !> As the line has them
      character(*), intent(in) :: names(:)
      !> From 1 on
      integer, intent(in) :: domain
      !> In the same order
      type(field), allocatable, intent(out) :: found(:)

      character(:), allocatable :: errmsg
      integer :: access, i

      allocate (found(size(names)))
      do i = 1, size(names)
         access = access_to(mine, line%entry_point, names(i))
         call find_field(line%entry_point, names(i), domain, access, found(i), errmsg)
         if (allocated(errmsg)) call give_up(mine, trim(line%function) // ": " // errmsg)
      end do
   end subroutine find

   !> What all lines of an entry point do with a field. ComIn keeps the flags of the first question, and by them copies
   !> the field between ICON's GPU and the host
   function access_to(mine, entry_point, name) result(access)
      !> Entry of plugin_list
      type(guest), intent(in) :: mine
      !> Where it is used
      integer, intent(in) :: entry_point
      !> NAME or NAME@device
      character(*), intent(in) :: name
      !> COMIN_FLAG_READ, COMIN_FLAG_WRITE or both
      integer :: access

      character(:), allocatable :: other
      integer :: i

      access = 0
      other = elsewhere(name)
      do i = 1, size(mine%hooks)
         associate (line => mine%hooks(i)%line)
            if (line%entry_point /= entry_point) cycle
            if (any(line%reads == name)) access = ior(access, COMIN_FLAG_READ)
            if (any(line%writes == name)) access = ior(access, COMIN_FLAG_WRITE)
            if (any(line%reads == other) .or. any(line%writes == other)) then
               call give_up(mine, trim(line%function) // ": " // trim(name) // " and " // other &
                  // " at one entry point: ICON copies a field between GPU and host for all of it, or not")
            end if
         end associate
      end do
   end function access_to

   !> An entry point that lines name: in its domain, or, where ICON is in none, in all of them
   subroutine call_hooks() bind(c)
      type(t_comin_descrdata_global), pointer :: global
      integer :: domain
      type(guest), pointer :: mine

      if (comin_current_get_domain_id() /= COMIN_DOMAIN_OUTSIDE_LOOP) then
         call call_in_domain(comin_current_get_domain_id())
      else
         global => comin_descrdata_get_global()
         do domain = 1, global%n_dom
            call call_in_domain(domain)
         end do
      end if
      mine => this_one()
      if (comin_current_get_ep() == EP_ATM_CHECKPOINT_BEFORE .and. allocated(mine%options%checkpoints)) then
         call write_checkpoint(mine)
      end if
   end subroutine call_hooks

   !> Arrays are described anew each time: ICON swaps its time levels
   subroutine call_in_domain(domain)
      !> From 1 on
      integer, intent(in) :: domain

      type(guest), pointer :: mine
      type(torch_arg), allocatable, target :: inputs(:), outputs(:)
      character(:), allocatable :: errmsg
      integer :: i, j, stat

      mine => this_one()
      call tell_call(domain, mine%options%rest, stat, errmsg)
      call check(mine, stat, errmsg)
      do i = 1, size(mine%hooks)
         associate (this => mine%hooks(i))
            if (this%line%entry_point /= comin_current_get_ep()) cycle
            inputs = [(in_of(this%domains(domain)%reads(j)), j = 1, size(this%domains(domain)%reads))]
            outputs = [(out_of(this%domains(domain)%writes(j)), j = 1, size(this%domains(domain)%writes))]
            call mine%script%call(trim(this%line%function), inputs, outputs, stat=stat, errmsg=errmsg)
            call check(mine, stat, errmsg)
         end associate
      end do
   end subroutine call_in_domain

   !> ICON writes its own restart file now
   subroutine write_checkpoint(mine)
      !> Entry of plugin_list
      type(guest), intent(inout) :: mine

      character(:), allocatable :: errmsg
      integer :: stat

      call mine%script%checkpoint(mine%options%checkpoints, stat=stat, errmsg=errmsg)
      call check(mine, stat, errmsg)
   end subroutine write_checkpoint

   !> ICON ends. Another plug-in may have ended Python before; then there is nothing to call
   subroutine end_script() bind(c)
      type(guest), pointer :: mine
      character(:), allocatable :: errmsg
      integer :: stat

      mine => this_one()
      if (mine%script%has("ftn_pytorch_end")) then
         call mine%script%call("ftn_pytorch_end", stat=stat, errmsg=errmsg)
         call check(mine, stat, errmsg)
      end if
      call mine%script%free()
   end subroutine end_script

   subroutine check(mine, stat, errmsg)
      !> Entry of plugin_list
      type(guest), intent(in) :: mine
      !> Of the call
      integer, intent(in) :: stat
      !> The text that belongs to it
      character(:), allocatable, intent(in) :: errmsg

      if (stat /= FTN_PYTORCH_OK) call give_up(mine, errmsg)
   end subroutine check

   !> End ICON
   subroutine give_up(mine, text)
      !> Entry of plugin_list
      type(guest), intent(in) :: mine
      !> Why
      character(*), intent(in) :: text

      call comin_plugin_finish("comin_ftn_pytorch (" // mine%name // ")", text)
   end subroutine give_up

   function this_one() result(mine)
      type(guest), pointer :: mine
      type(t_comin_plugin_info) :: info

      call comin_current_get_plugin_info(info)
      mine => guests(info%id)
   end function this_one
end module comin_ftn_pytorch
