! SPDX-License-Identifier: MIT
!> What the cap gives to the script: fields of a state as arguments, time and cells as ftn_pytorch.host().
module ftn_pytorch_cap_fields
   use ESMF
   use ftn_pytorch, only : ftn_pytorch_set_host, torch_arg, torch_in, torch_out, FTN_PYTORCH_OK
   use NUOPC_Model, only : NUOPC_ModelGet
   implicit none
   private

   public :: describe, failed, raised, tell_cells, tell_time

contains

   !> Fields of a state as arguments of a call
   subroutine describe(state, names, is_output, described, rc)
      type(ESMF_State), intent(in) :: state
      character(*), intent(in) :: names(:)
      logical, intent(in) :: is_output
      type(torch_arg), allocatable, intent(out) :: described(:)
      integer, intent(out) :: rc

      integer :: i

      rc = ESMF_SUCCESS
      allocate (described(size(names)))
      do i = 1, size(names)
         call describe_field(state, trim(names(i)), is_output, described(i), rc)
         if (failed(rc)) return
      end do
   end subroutine describe

   !> On a mesh, on a grid, or on a grid with levels
   subroutine describe_field(state, name, is_output, described, rc)
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
   end subroutine describe_field

   !> Mask and area of the cells of a field, for ftn_pytorch.host(), where its grid or mesh has them
   subroutine tell_cells(state, name, rc)
      type(ESMF_State), intent(in) :: state
      character(*), intent(in) :: name
      integer, intent(out) :: rc

      type(ESMF_Field) :: field
      type(ESMF_GeomType_Flag) :: kind
      type(ESMF_Grid) :: grid
      type(ESMF_Mesh) :: mesh
      type(ESMF_StaggerLoc) :: stagger
      type(ESMF_MeshLoc) :: location
      type(torch_arg), allocatable :: told(:)
      integer(ESMF_KIND_I4), pointer :: mask(:, :)
      real(ESMF_KIND_R8), pointer :: area(:, :)
      integer(ESMF_KIND_I4), allocatable :: masks(:)
      real(ESMF_KIND_R8), allocatable :: areas(:)
      integer :: axes, n, stat
      logical :: has_mask, has_area
      character(:), allocatable :: errmsg

      call ESMF_StateGet(state, itemName=name, field=field, rc=rc)
      if (failed(rc)) return
      call ESMF_FieldGet(field, geomtype=kind, rc=rc)
      if (failed(rc)) return
      allocate (told(0))
      if (kind == ESMF_GEOMTYPE_GRID) then
         call ESMF_FieldGet(field, grid=grid, staggerloc=stagger, rc=rc)
         if (failed(rc)) return
         call ESMF_GridGet(grid, dimCount=axes, rc=rc)
         if (failed(rc) .or. axes /= 2) return
         call ESMF_GridGetItem(grid, ESMF_GRIDITEM_MASK, staggerloc=stagger, isPresent=has_mask, rc=rc)
         if (failed(rc)) return
         call ESMF_GridGetItem(grid, ESMF_GRIDITEM_AREA, staggerloc=stagger, isPresent=has_area, rc=rc)
         if (failed(rc)) return
         if (has_mask) call ESMF_GridGetItem(grid, ESMF_GRIDITEM_MASK, staggerloc=stagger, farrayPtr=mask, rc=rc)
         if (failed(rc)) return
         if (has_area) call ESMF_GridGetItem(grid, ESMF_GRIDITEM_AREA, staggerloc=stagger, farrayPtr=area, rc=rc)
         if (failed(rc)) return
         if (has_mask) told = [torch_in("mask", mask)]
         if (has_area) told = [told, torch_in("area", area)]
      else if (kind == ESMF_GEOMTYPE_MESH) then
         call ESMF_FieldGet(field, mesh=mesh, meshloc=location, rc=rc)
         if (failed(rc) .or. location /= ESMF_MESHLOC_ELEMENT) return
         call ESMF_MeshGet(mesh, elementCount=n, elementMaskIsPresent=has_mask, elementAreaIsPresent=has_area, rc=rc)
         if (failed(rc)) return
         allocate (masks(n), areas(n))
         if (has_mask) call ESMF_MeshGet(mesh, elementMask=masks, rc=rc)
         if (failed(rc)) return
         if (has_area) call ESMF_MeshGet(mesh, elementArea=areas, rc=rc)
         if (failed(rc)) return
         if (has_mask) told = [torch_in("mask", masks)]
         if (has_area) told = [told, torch_in("area", areas)]
      end if
      if (size(told) == 0) return
      call ftn_pytorch_set_host(told, stat=stat, errmsg=errmsg)
      if (raised(stat, errmsg, rc)) return
   end subroutine tell_cells

   !> Time and calendar, for ftn_pytorch.host()
   subroutine tell_time(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(ESMF_Clock) :: clock
      type(ESMF_Time) :: time
      type(ESMF_TimeInterval) :: step
      type(ESMF_CalKind_Flag) :: kind
      character(64) :: text, calendar
      character(:), allocatable :: errmsg
      real(ESMF_KIND_R8) :: day, dt
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
   end subroutine tell_time

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
end module ftn_pytorch_cap_fields
