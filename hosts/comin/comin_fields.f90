! SPDX-License-Identifier: MIT
!> Fields of ICON as arguments of a call: (blocks, levels, cells) in the script, and (blocks, cells) without levels.
module comin_fields
   use, intrinsic :: iso_c_binding, only : c_bool
   use comin_plugin_interface, only : comin_var_get, comin_var_to_3d, t_comin_var_descriptor, t_comin_var_ptr, wp, &
      COMIN_FLAG_DEVICE, COMIN_FLAG_READ, COMIN_FLAG_WRITE
   use ftn_pytorch, only : torch_arg, torch_in, torch_out
   implicit none
   private

   public :: field, find_field, in_of, out_of

   !> A field in one domain. ICON moves it as its time levels go round
   type :: field
      type(t_comin_var_ptr), pointer :: of_icon => null()
      logical :: is_on_device = .false.
   end type field

   interface
      !> Of comin.h; its Fortran interface lacks it
      subroutine comin_error_set_errors_return(errors_return) bind(c)
         import :: c_bool
         implicit none
         !> Whether errors come back to the plug-in, in place of ending ICON
         logical(c_bool), value :: errors_return
      end subroutine comin_error_set_errors_return
   end interface

contains

   !> Ask ComIn for a field; in the secondary constructor only
   subroutine find_field(entry_point, name, domain, is_read, found, errmsg)
      !> Where it is used
      integer, intent(in) :: entry_point
      !> NAME or NAME@device
      character(*), intent(in) :: name
      !> From 1 on
      integer, intent(in) :: domain
      !> False if it is written
      logical, intent(in) :: is_read
      !> Receives it
      type(field), intent(out) :: found
      !> Allocated if there is none: why
      character(:), allocatable, intent(out) :: errmsg

      type(t_comin_var_descriptor) :: descriptor
      character(12) :: number
      integer :: at, flags

      at = index(name, "@")
      if (at == 0) at = len_trim(name) + 1
      if (at <= len_trim(name)) then
         found%is_on_device = name(at:) == "@device"
         if (.not. found%is_on_device) then
            errmsg = trim(name) // ": write NAME or NAME@device"
            return
         end if
      end if
      descriptor%id = domain
      descriptor%name = name(:at - 1)
      flags = merge(COMIN_FLAG_READ, COMIN_FLAG_WRITE, is_read)
      if (found%is_on_device) flags = ior(flags, COMIN_FLAG_DEVICE)
      ! ComIn's own text does not name the field
      call comin_error_set_errors_return(.true._c_bool)
      call comin_var_get([entry_point], descriptor, flags, found%of_icon)
      call comin_error_set_errors_return(.false._c_bool)
      if (associated(found%of_icon)) then
         if (.not. found%of_icon%lcontainer) return
         errmsg = name(:at - 1) // " is a container of fields: name one of them"
         return
      end if
      write (number, "(i0)") domain
      errmsg = "ICON has no field " // name(:at - 1) // " in domain " // trim(number)
      if (found%is_on_device) errmsg = errmsg // ", or does not run on a GPU"
   end subroutine find_field

   !> For reading
   function in_of(this) result(arg)
      type(field), intent(in) :: this
      type(torch_arg) :: arg

      real(wp), pointer :: values(:, :, :)

      values => comin_var_to_3d(this%of_icon)
      if (this%is_on_device) then
         arg = torch_in(this%of_icon%device_ptr, shape_of(this, values), "float64")
      else if (has_levels(this)) then
         arg = torch_in(values)
      else
         arg = torch_in(values(:, :, 1))
      end if
   end function in_of

   !> For writing
   function out_of(this) result(arg)
      type(field), intent(in) :: this
      type(torch_arg) :: arg

      real(wp), pointer :: values(:, :, :)

      values => comin_var_to_3d(this%of_icon)
      if (this%is_on_device) then
         arg = torch_out(this%of_icon%device_ptr, shape_of(this, values), "float64")
      else if (has_levels(this)) then
         arg = torch_out(values)
      else
         arg = torch_out(values(:, :, 1))
      end if
   end function out_of

   function has_levels(this) result(has)
      type(field), intent(in) :: this
      logical :: has

      has = this%of_icon%pos_jk > 0
   end function has_levels

   function shape_of(this, values) result(extents)
      type(field), intent(in) :: this
      real(wp), pointer, intent(in) :: values(:, :, :)
      integer, allocatable :: extents(:)

      extents = shape(values)
      if (.not. has_levels(this)) extents = extents(:2)
   end function shape_of
end module comin_fields
