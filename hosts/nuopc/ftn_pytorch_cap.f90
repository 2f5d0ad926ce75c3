! SPDX-License-Identifier: MIT
!> A NUOPC model whose time step is a function of a Python script: SetServices for a driver or for ESMX.
!>
!> Attributes of the component: ScriptFile; CheckpointFolder and RestartInterval (s) for checkpoints; StartType=continue
!> to restore the last one. docs/hosts.md describes what the script defines.
!>
!> Fields have the grids and meshes of the components that they come from or go to. They are in double precision.
module ftn_pytorch_cap
   use ESMF
   use ftn_pytorch, only : ftn_pytorch_init, ftn_pytorch_set_host, torch_arg, torch_in, torch_out, torch_pymodule, &
      torch_results, FTN_PYTORCH_OK
   use mpi, only : MPI_Initialized
   use NUOPC
   use NUOPC_Model, only : label_Advance, label_Advertise, label_Finalize, label_RealizeAccepted, &
      model_services => SetServices, NUOPC_ModelGet
   implicit none
   private

   public :: SetServices

   integer, parameter :: name_length = 128

   !> What an instance of the component keeps
   type :: instance
      type(torch_pymodule) :: script
      character(name_length), allocatable :: imports(:), exports(:)
      character(:), allocatable :: checkpoints
      !> Seconds between checkpoints, 0: none; and since the last one
      real(ESMF_KIND_R8) :: restart_interval = 0, since_checkpoint = 0
   end type instance

   type :: instance_pointer
      type(instance), pointer :: it => null()
   end type instance_pointer

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
      text = attribute(model, "RestartInterval", rc)
      if (failed(rc)) return
      if (text /= "") then
         read (text, *, iostat=stat) mine%it%restart_interval
         if (stat /= 0 .or. mine%it%restart_interval <= 0 .or. mine%it%checkpoints == "") then
            text = "RestartInterval=" // text // ": it is seconds, more than 0, and needs CheckpointFolder"
            if (raised(1, text, rc)) return
         end if
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
   end subroutine realize

   !> Calls ftn_pytorch_advance with the imported fields, which returns the exported ones
   subroutine advance(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine
      type(ESMF_State) :: imports, exports
      type(torch_arg), allocatable :: inputs(:), outputs(:)
      character(:), allocatable :: errmsg
      real(ESMF_KIND_R8) :: dt
      integer :: i, stat

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      if (failed(rc)) return
      call tell(model, dt, rc)
      if (failed(rc)) return
      allocate (inputs(size(mine%it%imports)), outputs(size(mine%it%exports)))
      do i = 1, size(inputs)
         call describe(imports, trim(mine%it%imports(i)), .false., inputs(i), rc)
         if (failed(rc)) return
      end do
      do i = 1, size(outputs)
         call describe(exports, trim(mine%it%exports(i)), .true., outputs(i), rc)
         if (failed(rc)) return
      end do
      call mine%it%script%call("ftn_pytorch_advance", inputs, outputs, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
      mine%it%since_checkpoint = mine%it%since_checkpoint + dt
      if (mine%it%restart_interval <= 0) return
      if (mine%it%since_checkpoint < mine%it%restart_interval) return
      mine%it%since_checkpoint = 0
      call mine%it%script%checkpoint(mine%it%checkpoints, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
   end subroutine advance

   !> Time and calendar, for ftn_pytorch.host()
   subroutine tell(model, dt, rc)
      type(ESMF_GridComp) :: model
      !> Seconds
      real(ESMF_KIND_R8), intent(out) :: dt
      integer, intent(out) :: rc

      type(ESMF_Clock) :: clock
      type(ESMF_Time) :: time
      type(ESMF_TimeInterval) :: step
      type(ESMF_CalKind_Flag) :: kind
      character(64) :: text, calendar
      character(:), allocatable :: errmsg
      real(ESMF_KIND_R8) :: day
      integer :: stat

      call NUOPC_ModelGet(model, modelClock=clock, rc=rc)
      if (failed(rc)) return
      call ESMF_ClockGet(clock, currTime=time, timeStep=step, rc=rc)
      if (failed(rc)) return
      call ESMF_TimeIntervalGet(step, s_r8=dt, rc=rc)
      if (failed(rc)) return
      call ESMF_TimeGet(time, timeStringISOFrac=text, dayOfYear_r8=day, calkindflag=kind, rc=rc)
      if (failed(rc)) return
      calendar = "other"
      if (kind == ESMF_CALKIND_GREGORIAN) calendar = "gregorian"
      if (kind == ESMF_CALKIND_NOLEAP) calendar = "noleap"
      if (kind == ESMF_CALKIND_360DAY) calendar = "360_day"
      call ftn_pytorch_set_host([torch_in("time", trim(text)), torch_in("dt", dt), &
         torch_in("calendar", trim(calendar)), torch_in("day_of_year", day)], stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
   end subroutine tell

   !> A field of a state: on a mesh, on a grid, or on a grid with levels
   subroutine describe(state, name, is_output, described, rc)
      type(ESMF_State), intent(in) :: state
      character(*), intent(in) :: name
      logical, intent(in) :: is_output
      type(torch_arg), intent(out) :: described
      integer, intent(out) :: rc

      type(ESMF_Field) :: field
      real(ESMF_KIND_R8), pointer :: cells(:), grid(:, :), levels(:, :, :)
      integer :: rank, pieces

      call ESMF_StateGet(state, itemName=name, field=field, rc=rc)
      if (failed(rc)) return
      call ESMF_FieldGet(field, rank=rank, localDeCount=pieces, rc=rc)
      if (failed(rc)) return
      if (pieces /= 1 .or. rank < 1 .or. rank > 3) then
         if (raised(1, "field " // name // " must have one piece on each rank, and 1 to 3 axes", rc)) return
      end if
      select case (rank)
      case (1)
         call ESMF_FieldGet(field, farrayPtr=cells, rc=rc)
         if (failed(rc)) return
         if (is_output) described = torch_out(name, cells)
         if (.not. is_output) described = torch_in(name, cells)
      case (2)
         call ESMF_FieldGet(field, farrayPtr=grid, rc=rc)
         if (failed(rc)) return
         if (is_output) described = torch_out(name, grid)
         if (.not. is_output) described = torch_in(name, grid)
      case (3)
         call ESMF_FieldGet(field, farrayPtr=levels, rc=rc)
         if (failed(rc)) return
         if (is_output) described = torch_out(name, levels)
         if (.not. is_output) described = torch_in(name, levels)
      end select
   end subroutine describe

   subroutine finalize(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(instance_pointer) :: mine

      call ESMF_GridCompGetInternalState(model, mine, rc)
      if (failed(rc)) return
      call mine%it%script%free()
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

   !> Whether a call of ESMF failed; says so in its log
   logical function failed(rc)
      integer, intent(in) :: rc

      failed = ESMF_LogFoundError(rcToCheck=rc, msg=ESMF_LOGERR_PASSTHRU)
   end function failed

   !> Whether a call of ftn_pytorch failed: its text is in ESMF's log then, and rc is ESMF_FAILURE
   logical function raised(stat, errmsg, rc)
      integer, intent(in) :: stat
      character(*), intent(in), optional :: errmsg
      integer, intent(inout) :: rc

      raised = stat /= FTN_PYTORCH_OK
      if (raised) call ESMF_LogSetError(ESMF_FAILURE, msg=errmsg, rcToReturn=rc)
   end function raised
end module ftn_pytorch_cap
