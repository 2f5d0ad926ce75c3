! SPDX-License-Identifier: MIT
!> A NUOPC model whose time step is a function of a Python script: SetServices for a driver or for ESMX.
!>
!> Attributes of the component: ScriptFile; CheckpointFolder and RestartInterval for checkpoints; StartType=continue to
!> restore the last one. docs/hosts.md describes what the script defines.
!>
!> Fields have the grids and meshes of the components that they come from or go to. They are in double precision.
module ftn_pytorch_cap
   use ESMF
   use ftn_pytorch, only : ftn_pytorch_init, torch_arg, torch_pymodule, torch_results, FTN_PYTORCH_OK
   use ftn_pytorch_cap_fields, only : describe, failed, raised, tell_cells, tell_time
   use mpi, only : MPI_Initialized
   use NUOPC
   use NUOPC_Model, only : label_Advance, label_Advertise, label_Finalize, label_RealizeAccepted, label_SetClock, &
      model_services => SetServices, NUOPC_ModelGet, SetVM
   implicit none
   private

   public :: SetServices, SetVM

   integer, parameter :: name_length = 128

   !> What an instance of the component keeps
   type :: instance
      type(torch_pymodule) :: script
      character(name_length), allocatable :: imports(:), exports(:)
      character(:), allocatable :: checkpoints
      !> Of checkpoints
      type(ESMF_Alarm) :: alarm
      logical :: has_alarm = .false.
   end type instance

   type :: instance_pointer
      type(instance), pointer :: it => null()
   end type instance_pointer

   !> Whose cells ftn_pytorch.host() has: there may be several such components in a process
   type(instance), pointer, save :: told => null()

contains

   subroutine SetServices(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      call NUOPC_CompDerive(model, model_services, rc=rc)
      if (failed(rc)) return
      call NUOPC_CompAttributeAdd(model, [character(16) :: "ScriptFile", "CheckpointFolder", "RestartInterval", &
         "StartType"], rc=rc)
      if (failed(rc)) return
      call NUOPC_CompSpecialize(model, specLabel=label_Advertise, specRoutine=advertise, rc=rc)
      if (failed(rc)) return
      call NUOPC_CompSpecialize(model, specLabel=label_RealizeAccepted, specRoutine=realize, rc=rc)
      if (failed(rc)) return
      call NUOPC_CompSpecialize(model, specLabel=label_SetClock, specRoutine=set_alarm, rc=rc)
      if (failed(rc)) return
      call NUOPC_CompSpecialize(model, specLabel=label_Advance, specRoutine=advance, rc=rc)
      if (failed(rc)) return
      call NUOPC_CompSpecialize(model, specLabel=label_Finalize, specRoutine=finalize, rc=rc)
      if (failed(rc)) return
   end subroutine SetServices

   !> Loads the script, and advertises the fields that it lists
   subroutine advertise(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine
      type(ESMF_State) :: imports, exports
      type(ESMF_VM) :: vm
      type(torch_results) :: lines
      character(:), allocatable :: script, text, errmsg
      integer :: communicator, i, stat
      character(name_length), allocatable :: words(:, :)
      logical :: has_mpi, restores

      ! ESMF calls MPI from C. This makes the linker keep MPI's Fortran bindings, by which scripts reach other ranks.
      call MPI_Initialized(has_mpi, stat)
      allocate (mine%it)
      call ESMF_GridCompSetInternalState(model, mine, rc)
      if (failed(rc)) return
      script = attribute(model, "ScriptFile", rc)
      if (failed(rc)) return
      mine%it%checkpoints = attribute(model, "CheckpointFolder", rc)
      if (failed(rc)) return
      if (index(mine%it%checkpoints, "%r") == 0 .and. mine%it%checkpoints /= "") then
         mine%it%checkpoints = mine%it%checkpoints // "/rank%r"
      end if
      restores = attribute(model, "StartType", rc) == "continue"
      if (failed(rc)) return
      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      if (failed(rc)) return
      call ESMF_GridCompGet(model, vm=vm, rc=rc)
      if (failed(rc)) return
      call ESMF_VMGet(vm, mpiCommunicator=communicator, rc=rc)
      if (failed(rc)) return

      call ftn_pytorch_init(stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) call mine%it%script%load(script, communicator=communicator, stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK) call mine%it%script%call("ftn_pytorch_nuopc", lines, stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_OK .and. restores .and. mine%it%checkpoints /= "") then
         call mine%it%script%restore(mine%it%checkpoints, stat=stat, errmsg=errmsg)
      end if
      if (raised(stat, errmsg, rc)) return
      allocate (words(3, lines%count()))
      do i = 1, size(words, 2)
         call lines%scalar(i, text, stat=stat, errmsg=errmsg)
         if (raised(stat, errmsg, rc)) return
         call read_line(text, words(:, i), rc)
         if (failed(rc)) return
         if (words(1, i) == "import") call offer(imports, words(2:, i), rc)
         if (words(1, i) == "export") call offer(exports, words(2:, i), rc)
         if (failed(rc)) return
      end do
      call lines%free()
      call keep(words, "import", mine%it%imports)
      call keep(words, "export", mine%it%exports)
   end subroutine advertise

   !> The names of lines of a kind. By hand: gfortran 12 writes beyond a component that a pack of texts is assigned to.
   subroutine keep(words, kind, names)
      character(name_length), intent(in) :: words(:, :)
      character(*), intent(in) :: kind
      character(name_length), allocatable, intent(out) :: names(:)

      integer :: i, n

      allocate (names(count(words(1, :) == kind)))
      n = 0
      do i = 1, size(words, 2)
         if (words(1, i) /= kind) cycle
         n = n + 1
         names(n) = words(2, i)
      end do
   end subroutine keep

   !> "import NAME [STANDARD_NAME]" or "export NAME [STANDARD_NAME]"
   subroutine read_line(line, words, rc)
      character(*), intent(in) :: line
      character(name_length), intent(out) :: words(3)
      integer, intent(out) :: rc

      character(:), allocatable :: completed
      integer :: ios

      rc = ESMF_SUCCESS
      words = ""
      read (line, *, iostat=ios) words(1:2)
      completed = line // " " // words(2)
      if (ios == 0) read (completed, *, iostat=ios) words
      if (ios == 0 .and. (words(1) == "import" .or. words(1) == "export")) return
      if (raised(1, "line """ // line // """: it is import or export, a name, and a standard name", rc)) return
   end subroutine read_line

   !> Advertises a field; words: name and standard name
   subroutine offer(state, words, rc)
      type(ESMF_State) :: state
      character(name_length), intent(in) :: words(2)
      integer, intent(out) :: rc

      if (.not. NUOPC_FieldDictionaryHasEntry(trim(words(2)), rc=rc)) then
         call NUOPC_FieldDictionaryAddEntry(trim(words(2)), canonicalUnits="1", rc=rc)
      end if
      if (failed(rc)) return
      call NUOPC_Advertise(state, StandardName=trim(words(2)), name=trim(words(1)), &
         TransferOfferGeomObject="cannot provide", rc=rc)
   end subroutine offer

   subroutine realize(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine
      type(ESMF_State) :: imports, exports
      integer :: i

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      if (failed(rc)) return
      do i = 1, size(mine%it%imports)
         call NUOPC_Realize(imports, fieldName=trim(mine%it%imports(i)), typekind=ESMF_TYPEKIND_R8, rc=rc)
         if (failed(rc)) return
      end do
      do i = 1, size(mine%it%exports)
         call NUOPC_Realize(exports, fieldName=trim(mine%it%exports(i)), typekind=ESMF_TYPEKIND_R8, rc=rc)
         if (failed(rc)) return
      end do
      call tell_grid(mine%it, imports, exports, rc)
      if (failed(rc)) return
      call set_exports(mine%it, exports, rc)
   end subroutine realize

   !> Mask and area of the first field, unless they are told
   subroutine tell_grid(it, imports, exports, rc)
      type(instance), pointer, intent(in) :: it
      type(ESMF_State), intent(in) :: imports, exports
      integer, intent(out) :: rc

      rc = ESMF_SUCCESS
      if (associated(told, it)) return
      if (size(it%imports) > 0) then
         call tell_cells(imports, trim(it%imports(1)), rc)
      else if (size(it%exports) > 0) then
         call tell_cells(exports, trim(it%exports(1)), rc)
      end if
      if (failed(rc)) return
      told => it
   end subroutine tell_grid

   !> Before the first step, as other components may come first: zeros, or what ftn_pytorch_initialize makes of these
   subroutine set_exports(it, exports, rc)
      type(instance), intent(in) :: it
      type(ESMF_State), intent(in) :: exports
      integer, intent(out) :: rc

      type(ESMF_Field) :: field
      type(torch_arg), allocatable :: zeros(:), outputs(:)
      character(:), allocatable :: errmsg
      integer :: i, stat

      do i = 1, size(it%exports)
         call ESMF_StateGet(exports, itemName=trim(it%exports(i)), field=field, rc=rc)
         if (failed(rc)) return
         call ESMF_FieldFill(field, dataFillScheme="const", const1=0.0_ESMF_KIND_R8, rc=rc)
         if (failed(rc)) return
      end do
      call describe(exports, it%exports, .false., zeros, rc)
      if (failed(rc)) return
      call describe(exports, it%exports, .true., outputs, rc)
      if (failed(rc)) return
      if (.not. it%script%has("ftn_pytorch_initialize")) return
      call it%script%call("ftn_pytorch_initialize", zeros, outputs, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
   end subroutine set_exports

   !> Rings where a step ends with a checkpoint
   subroutine set_alarm(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine
      type(ESMF_Clock) :: clock
      type(ESMF_Time) :: now
      type(ESMF_TimeInterval) :: interval
      character(:), allocatable :: text
      real(ESMF_KIND_R8) :: seconds
      integer :: stat

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      text = attribute(model, "RestartInterval", rc)
      if (failed(rc) .or. text == "") return
      call NUOPC_ModelGet(model, modelClock=clock, rc=rc)
      if (failed(rc)) return
      call ESMF_ClockGet(clock, currTime=now, rc=rc)
      if (failed(rc)) return
      read (text, *, iostat=stat) seconds
      if (stat == 0) call ESMF_TimeIntervalSet(interval, s_r8=seconds, rc=stat)
      if (stat /= ESMF_SUCCESS) call ESMF_TimeIntervalSet(interval, timeIntervalString=text, rc=stat)
      if (stat == ESMF_SUCCESS) stat = merge(ESMF_SUCCESS, 1, now + interval > now .and. mine%it%checkpoints /= "")
      if (raised(stat, "RestartInterval=" // text // ": it is seconds, or an ISO 8601 duration such as P1M, more " // &
         "than 0, and needs CheckpointFolder", rc)) return
      mine%it%alarm = ESMF_AlarmCreate(clock, ringTime=now + interval, ringInterval=interval, sticky=.false., &
         name="ftn_pytorch checkpoint", rc=rc)
      if (failed(rc)) return
      mine%it%has_alarm = .true.
   end subroutine set_alarm

   !> Calls ftn_pytorch_advance with the imported fields, which returns the exported ones
   subroutine advance(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine
      type(ESMF_State) :: imports, exports
      type(torch_arg), allocatable :: inputs(:), outputs(:)
      character(:), allocatable :: errmsg
      integer :: stat
      logical :: is_due

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      if (failed(rc)) return
      call tell_time(model, rc)
      if (failed(rc)) return
      call tell_grid(mine%it, imports, exports, rc)
      if (failed(rc)) return
      call describe(imports, mine%it%imports, .false., inputs, rc)
      if (failed(rc)) return
      call describe(exports, mine%it%exports, .true., outputs, rc)
      if (failed(rc)) return
      call mine%it%script%call("ftn_pytorch_advance", inputs, outputs, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
      if (.not. mine%it%has_alarm) return
      is_due = ESMF_AlarmWillRingNext(mine%it%alarm, rc=rc)
      if (failed(rc)) return
      if (.not. is_due) return
      call mine%it%script%checkpoint(mine%it%checkpoints, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
   end subroutine advance

   subroutine finalize(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      call mine%it%script%free()
      if (associated(told, mine%it)) nullify (told)
      deallocate (mine%it)
   end subroutine finalize

   function attribute(model, name, rc) result(value)
      type(ESMF_GridComp), intent(in) :: model
      character(*), intent(in) :: name
      integer, intent(out) :: rc
      character(:), allocatable :: value

      character(1024) :: text
      logical :: is_set

      text = ""
      call NUOPC_CompAttributeGet(model, name=name, value=text, isSet=is_set, rc=rc)
      value = trim(text)
      if (.not. is_set) value = ""
   end function attribute
end module ftn_pytorch_cap
