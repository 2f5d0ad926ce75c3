! SPDX-License-Identifier: MIT
!> A host of ComIn that computes on a GPU: one domain, whose field temp is in its memory, with an older copy on the
!> host. It calls the plug-ins of master.nml once before its physics, and prints what is in both memories at the end.
module gpu_memory
   use, intrinsic :: iso_c_binding, only : c_double, c_int, c_loc, c_ptr, c_sizeof, c_size_t
   use comin_host_interface, only : t_comin_var_handle
   implicit none
   private

   public :: copy, cudaMalloc, on_gpu, temp

   !> Directions of the CUDA runtime
   integer(c_int), parameter :: to_gpu = 1, to_host = 2

   !> (nproma, levels, blocks, -, -), as ICON has it
   real(c_double), target :: temp(8, 2, 3, 1, 1)
   !> The same on the GPU
   type(c_ptr) :: on_gpu

   interface
      function cudaMalloc(address, bytes) result(status) bind(c, name="cudaMalloc")
         import :: c_int, c_ptr, c_size_t
         implicit none
         type(c_ptr), intent(out) :: address
         integer(c_size_t), value :: bytes
         integer(c_int) :: status
      end function cudaMalloc

      function cudaMemcpy(target, source, bytes, direction) result(status) bind(c, name="cudaMemcpy")
         import :: c_int, c_ptr, c_size_t
         implicit none
         type(c_ptr), value :: target
         type(c_ptr), value :: source
         integer(c_size_t), value :: bytes
         integer(c_int), value :: direction
         integer(c_int) :: status
      end function cudaMemcpy
   end interface

contains

   !> What ComIn asks of a host with a GPU
   subroutine copy(var_ptr, direction)
      !> The field; there is one
      type(t_comin_var_handle), intent(in) :: var_ptr
      !> True: to the GPU
      logical, intent(in) :: direction

      integer(c_int) :: status

      if (.not. var_ptr%valid()) error stop "no field"
      if (direction) then
         status = cudaMemcpy(on_gpu, c_loc(temp), c_sizeof(temp), to_gpu)
      else
         status = cudaMemcpy(c_loc(temp), on_gpu, c_sizeof(temp), to_host)
      end if
      if (status /= 0) error stop "cudaMemcpy failed"
   end subroutine copy
end module gpu_memory

program gpu_host
   use, intrinsic :: iso_c_binding, only : c_int, c_loc, c_sizeof
   use, intrinsic :: iso_fortran_env, only : error_unit
   use comin_host_interface
   use gpu_memory, only : copy, cudaMalloc, on_gpu, temp
   use mpi
   implicit none

   integer, parameter :: wp = kind(1d0)
   type(t_comin_descrdata_global) :: global
   type(t_comin_descrdata_domain), save, target :: domains(1)
   type(t_comin_descrdata_simulation_interval) :: interval
   type(t_comin_plugin_description) :: plugin_list(16)
   type(t_comin_var_handle) :: handle
   type(t_comin_var_descriptor) :: descriptor
   character(256), parameter :: names(2) = ["gpu_host", "comin   "]
   integer :: comms(2), ierr, unit, count, i
   namelist /comin_nml/ plugin_list

   call MPI_Init(ierr)
   call mpi_handshake(MPI_COMM_WORLD, names, comms)
   call comin_setup_init(.false.)
   call comin_setup_errhandler(finish)
   call comin_setup_check("gpu_host", wp)
   call describe()
   open (newunit=unit, file="master.nml", action="read", status="old")
   read (unit, nml=comin_nml)
   close (unit)
   do count = 0, size(plugin_list) - 1
      if (plugin_list(count + 1)%plugin_library == "") exit
   end do
   call comin_parallel_mpi_handshake(comms(2), plugin_list(:count)%comm, "atmo")
   call comin_var_set_sync_device_mem(copy)
   call comin_plugin_primaryconstructor(plugin_list(:count))

   if (cudaMalloc(on_gpu, c_sizeof(temp)) /= 0) error stop "cudaMalloc failed"
   temp = reshape([(real(i, wp), i=1, size(temp))], shape(temp))
   descriptor%name = "temp"
   descriptor%id = 1
   call comin_var_list_append(descriptor, c_loc(temp), on_gpu, shape(temp), COMIN_VAR_DATATYPE_DOUBLE, &
      [COMIN_DIM_SEMANTICS_NPROMA, COMIN_DIM_SEMANTICS_LEVEL, COMIN_DIM_SEMANTICS_BLOCK, COMIN_DIM_SEMANTICS_UNUSED, &
      COMIN_DIM_SEMANTICS_UNUSED], .false., 0, handle)
   call copy(handle, .true.)
   temp = -1
   call comin_callback_context_call(EP_SECONDARY_CONSTRUCTOR, COMIN_DOMAIN_OUTSIDE_LOOP, .false.)
   call comin_callback_context_call(EP_ATM_PHYSICS_BEFORE, 1, .true.)
   call comin_callback_context_call(EP_DESTRUCTOR, COMIN_DOMAIN_OUTSIDE_LOOP, .false.)
   write (*, "(a,2f8.1)") "on the host ", minval(temp), maxval(temp)
   call copy(handle, .false.)
   write (*, "(a,2f8.1)") "on the GPU ", minval(temp), maxval(temp)
   call MPI_Finalize(ierr)

contains

   !> Tell ComIn of 24 cells, all of this rank
   subroutine describe()
      integer, parameter :: cells = size(temp, 1)*size(temp, 3)

      global%n_dom = 1
      global%nproma = size(temp, 1)
      global%lrestartrun = .false.
      global%has_device = .true.
      global%device_name = "GPU"
      global%device_vendor = "any"
      global%device_driver = "any"
      call comin_descrdata_set_global(global)
      associate (mine => domains(1)%cells)
         allocate (domains(1)%id, source=1_c_int)
         allocate (domains(1)%nlev, source=size(temp, 2, kind=c_int))
         allocate (mine%ncells, source=int(cells, c_int))
         allocate (mine%nblks, source=size(temp, 3, kind=c_int))
         allocate (mine%clon(size(temp, 1), size(temp, 3)), mine%clat(size(temp, 1), size(temp, 3)), source=0.0_wp)
         allocate (mine%decomp_domain(size(temp, 1), size(temp, 3)), source=0_c_int)
         allocate (mine%glb_index(cells), source=[(int(i, c_int), i=1, cells)])
      end associate
      call comin_descrdata_set_timesteplength(1, 600.0_wp)
      call comin_descrdata_set_domain(domains)
      interval = t_comin_descrdata_simulation_interval(exp_start="1950-01-01T00:00:00", &
         exp_stop="1950-01-01T00:10:00", run_start="1950-01-01T00:00:00", run_stop="1950-01-01T00:10:00")
      call comin_descrdata_set_simulation_interval(interval)
      call comin_current_set_datetime("1950-01-01T00:00:00")
   end subroutine describe

   subroutine finish(routine, text)
      !> Who ends the run
      character(*), intent(in) :: routine
      !> Why
      character(*), intent(in), optional :: text

      write (error_unit, "(a)") routine
      if (present(text)) write (error_unit, "(a)") text
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
   end subroutine finish
end program gpu_host
