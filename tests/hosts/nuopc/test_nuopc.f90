! SPDX-License-Identifier: MIT
!> The cap of hosts/nuopc beside a component with a grid, or with a mesh:
!> mpirun -n RANKS test_nuopc SCRIPT FIRST LAST [FOLDER [INTERVAL [mesh [SCRIPT]]]]
!>
!> The component gives x, a temperature of each cell and step, takes y, and prints the sums of what it got. levels is
!> 1, 2 and 3 in three levels. Cells are masked by 1 in every third column, and have areas. A second script is a
!> component of its own, which takes fields and gives none.
module source
   use ESMF
   use NUOPC
   use NUOPC_Model, only : label_Advance, label_Advertise, label_RealizeProvided, &
      model_services => SetServices, NUOPC_ModelGet
   implicit none
   private

   public :: source_services

   integer, parameter :: nlev = 3
   integer, public :: steps = 0
   logical, public :: has_mesh = .false.
   real(ESMF_KIND_R8), public :: got = 0

contains

   subroutine source_services(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      call NUOPC_CompDerive(model, model_services, rc=rc)
      call NUOPC_CompSpecialize(model, specLabel=label_Advertise, specRoutine=advertise, rc=rc)
      call NUOPC_CompSpecialize(model, specLabel=label_RealizeProvided, specRoutine=realize, rc=rc)
      call NUOPC_CompSpecialize(model, specLabel=label_Advance, specRoutine=advance, rc=rc)
   end subroutine source_services

   subroutine advertise(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(ESMF_State) :: imports, exports

      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      call NUOPC_FieldDictionaryAddEntry("quantity_levels", canonicalUnits="1", rc=rc)
      call NUOPC_Advertise(exports, StandardName="quantity_levels", name="levels", &
         TransferOfferGeomObject="will provide", rc=rc)
      call NUOPC_Advertise(exports, StandardName="sea_surface_temperature", name="x", &
         TransferOfferGeomObject="will provide", rc=rc)
      call NUOPC_Advertise(imports, StandardName="surface_net_downward_longwave_flux", name="y", &
         TransferOfferGeomObject="will provide", rc=rc)
   end subroutine advertise

   subroutine realize(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(ESMF_State) :: imports, exports
      type(ESMF_Grid) :: grid
      type(ESMF_Mesh) :: mesh
      integer(ESMF_KIND_I4), pointer :: mask(:, :)
      real(ESMF_KIND_R8), pointer :: area(:, :), levels(:, :, :)
      type(ESMF_Field) :: field
      integer :: i, k

      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      grid = ESMF_GridCreateNoPeriDimUfrm(maxIndex=[12, 8], minCornerCoord=[0.0_ESMF_KIND_R8, 0.0_ESMF_KIND_R8], &
         maxCornerCoord=[12.0_ESMF_KIND_R8, 8.0_ESMF_KIND_R8], coordSys=ESMF_COORDSYS_CART, &
         staggerLocList=[ESMF_STAGGERLOC_CENTER, ESMF_STAGGERLOC_CORNER], rc=rc)
      call ESMF_GridAddItem(grid, ESMF_GRIDITEM_MASK, staggerloc=ESMF_STAGGERLOC_CENTER, rc=rc)
      call ESMF_GridAddItem(grid, ESMF_GRIDITEM_AREA, staggerloc=ESMF_STAGGERLOC_CENTER, rc=rc)
      call ESMF_GridGetItem(grid, ESMF_GRIDITEM_MASK, staggerloc=ESMF_STAGGERLOC_CENTER, farrayPtr=mask, rc=rc)
      call ESMF_GridGetItem(grid, ESMF_GRIDITEM_AREA, staggerloc=ESMF_STAGGERLOC_CENTER, farrayPtr=area, rc=rc)
      mask = 0
      do i = lbound(mask, 1), ubound(mask, 1)
         if (modulo(i, 3) == 0) mask(i, :) = 1
         area(i, :) = i
      end do
      if (has_mesh) then
         mesh = ESMF_MeshCreate(grid, rc=rc)
         call NUOPC_Realize(exports, mesh, fieldName="x", meshloc=ESMF_MESHLOC_ELEMENT, &
            typekind=ESMF_TYPEKIND_R8, rc=rc)
         call NUOPC_Realize(imports, mesh, fieldName="y", meshloc=ESMF_MESHLOC_ELEMENT, &
            typekind=ESMF_TYPEKIND_R8, rc=rc)
      else
         call NUOPC_Realize(exports, grid, fieldName="x", typekind=ESMF_TYPEKIND_R8, rc=rc)
         call NUOPC_Realize(imports, grid, fieldName="y", typekind=ESMF_TYPEKIND_R8, rc=rc)
      end if
      field = ESMF_FieldCreate(grid, ESMF_TYPEKIND_R8, name="levels", ungriddedLBound=[1], &
         ungriddedUBound=[nlev], rc=rc)
      call NUOPC_Realize(exports, field=field, rc=rc)
      call ESMF_FieldGet(field, farrayPtr=levels, rc=rc)
      do k = 1, nlev
         levels(:, :, k) = k
      end do
      call fill(exports, rc)
   end subroutine realize

   subroutine advance(model, rc)
      type(ESMF_GridComp) :: model
      integer, intent(out) :: rc

      type(ESMF_State) :: imports, exports
      type(ESMF_Field) :: field
      real(ESMF_KIND_R8), pointer :: y(:, :), cells(:)

      call NUOPC_ModelGet(model, importState=imports, exportState=exports, rc=rc)
      call ESMF_StateGet(imports, itemName="y", field=field, rc=rc)
      if (has_mesh) then
         call ESMF_FieldGet(field, farrayPtr=cells, rc=rc)
         got = sum(cells)
      else
         call ESMF_FieldGet(field, farrayPtr=y, rc=rc)
         got = sum(y)
      end if
      steps = steps + 1
      call fill(exports, rc)
   end subroutine advance

   subroutine fill(exports, rc)
      type(ESMF_State) :: exports
      integer, intent(out) :: rc

      type(ESMF_Field) :: field
      real(ESMF_KIND_R8), pointer :: x(:, :), cells(:)
      integer :: i, j

      call ESMF_StateGet(exports, itemName="x", field=field, rc=rc)
      if (has_mesh) then
         call ESMF_FieldGet(field, farrayPtr=cells, rc=rc)
         cells = [(280 + 0.1_ESMF_KIND_R8*i + steps, i=1, size(cells))]
         return
      end if
      call ESMF_FieldGet(field, farrayPtr=x, rc=rc)
      do j = lbound(x, 2), ubound(x, 2)
         do i = lbound(x, 1), ubound(x, 1)
            x(i, j) = 280 + 0.1_ESMF_KIND_R8*(i + 12*j) + steps
         end do
      end do
   end subroutine fill
end module source

module coupled
   use ESMF
   use ftn_pytorch_cap, only : cap_services => SetServices
   use NUOPC
   use NUOPC_Connector, only : connector_services => SetServices
   use NUOPC_Driver, only : driver_services => SetServices, label_SetModelServices, NUOPC_DriverAddComp
   use source, only : has_mesh, source_services, steps
   implicit none
   private

   public :: coupled_services

contains

   subroutine coupled_services(driver, rc)
      type(ESMF_GridComp) :: driver
      integer, intent(out) :: rc

      call NUOPC_CompDerive(driver, driver_services, rc=rc)
      call NUOPC_CompSpecialize(driver, specLabel=label_SetModelServices, specRoutine=components, rc=rc)
   end subroutine coupled_services

   subroutine components(driver, rc)
      type(ESMF_GridComp) :: driver
      integer, intent(out) :: rc

      type(ESMF_GridComp) :: child
      type(ESMF_CplComp) :: connector
      type(ESMF_Time) :: start, finish
      type(ESMF_TimeInterval) :: step
      type(ESMF_Clock) :: clock
      character(1024) :: script, folder
      character(16) :: word
      integer :: first, last

      call get_command_argument(1, script)
      call get_command_argument(2, word)
      read (word, *) first
      call get_command_argument(3, word)
      read (word, *) last
      call get_command_argument(4, folder)
      word = "3600"
      if (command_argument_count() > 4) call get_command_argument(5, word)
      has_mesh = command_argument_count() > 5
      steps = first - 1
      call NUOPC_DriverAddComp(driver, "ATM", source_services, comp=child, rc=rc)
      call NUOPC_DriverAddComp(driver, "ML", cap_services, comp=child, rc=rc)
      call NUOPC_CompAttributeSet(child, name="ScriptFile", value=trim(script), rc=rc)
      if (folder /= "" .or. command_argument_count() == 5) then
         call NUOPC_CompAttributeSet(child, name="CheckpointFolder", value=trim(folder), rc=rc)
         call NUOPC_CompAttributeSet(child, name="RestartInterval", value=trim(word), rc=rc)
         if (first > 1) call NUOPC_CompAttributeSet(child, name="StartType", value="continue", rc=rc)
      end if
      if (command_argument_count() > 6) then
         call get_command_argument(7, script)
         call NUOPC_DriverAddComp(driver, "ML2", cap_services, comp=child, rc=rc)
         call NUOPC_CompAttributeSet(child, name="ScriptFile", value=trim(script), rc=rc)
         call NUOPC_DriverAddComp(driver, srcCompLabel="ATM", dstCompLabel="ML2", &
            compSetServicesRoutine=connector_services, comp=connector, rc=rc)
      end if
      call NUOPC_DriverAddComp(driver, srcCompLabel="ATM", dstCompLabel="ML", &
         compSetServicesRoutine=connector_services, comp=connector, rc=rc)
      call NUOPC_DriverAddComp(driver, srcCompLabel="ML", dstCompLabel="ATM", &
         compSetServicesRoutine=connector_services, comp=connector, rc=rc)
      call ESMF_TimeIntervalSet(step, m=30, rc=rc)
      call ESMF_TimeSet(start, yy=2010, mm=3, dd=1, m=30*(first - 1), calkindflag=ESMF_CALKIND_NOLEAP, rc=rc)
      call ESMF_TimeSet(finish, yy=2010, mm=3, dd=1, m=30*last, calkindflag=ESMF_CALKIND_NOLEAP, rc=rc)
      clock = ESMF_ClockCreate(name="clock", timeStep=step, startTime=start, stopTime=finish, rc=rc)
      call ESMF_GridCompSet(driver, clock=clock, rc=rc)
   end subroutine components
end module coupled

program test_nuopc
   use ESMF
   use coupled, only : coupled_services
   use source, only : got, steps
   implicit none

   type(ESMF_GridComp) :: driver
   type(ESMF_VM) :: vm
   integer :: rc, user, rank

   call ESMF_Initialize(logkindflag=ESMF_LOGKIND_MULTI, defaultCalkind=ESMF_CALKIND_NOLEAP, rc=rc)
   driver = ESMF_GridCompCreate(name="driver", rc=rc)
   call ESMF_GridCompSetServices(driver, coupled_services, userRc=user, rc=rc)
   call check("SetServices")
   call ESMF_GridCompInitialize(driver, userRc=user, rc=rc)
   call check("Initialize")
   call ESMF_GridCompRun(driver, userRc=user, rc=rc)
   call check("Run")
   call ESMF_VMGetCurrent(vm, rc=rc)
   call ESMF_VMGet(vm, localPet=rank, rc=rc)
   print "(a, i0, a, i0, a, es24.16)", "rank ", rank, " after step ", steps, " got ", got
   call ESMF_GridCompFinalize(driver, userRc=user, rc=rc)
   call check("Finalize")
   call ESMF_Finalize(rc=rc)

contains

   subroutine check(what)
      character(*), intent(in) :: what

      if (rc == ESMF_SUCCESS .and. user == ESMF_SUCCESS) return
      print "(2a)", "FAILED in ", what
      call ESMF_Finalize(endflag=ESMF_END_ABORT)
   end subroutine check
end program test_nuopc
