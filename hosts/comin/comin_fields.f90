! SPDX-License-Identifier: MIT
!> Fields of ICON as arguments of a call: (blocks, levels, cells) in the script, and (blocks, cells) without levels.
module comin_fields
   use, intrinsic :: iso_c_binding, only : c_associated, c_char, c_int, c_null_char, c_null_ptr, c_ptr
   use comin_plugin_interface, only : COMIN_FLAG_DEVICE
   use ftn_pytorch, only : torch_arg, torch_in, torch_out
   implicit none
   private

   public :: elsewhere, field, find_field, in_of, out_of

   !> After the name of a field: it is used where ICON has it, in the memory of a GPU
   character(*), parameter :: on_device = "@device"

   !> What torch calls the types that comin_field_find numbers
   character(*), parameter :: dtypes(3) = ["float64", "float32", "int32  "]

   !> A field in one domain
   type :: field
      private
      !> Of ComIn, which keeps it
      type(c_ptr) :: handle = c_null_ptr
      integer, allocatable :: extents(:)
      integer :: type = 0
      logical :: is_on_device = .false.
   end type field

   interface
      !> Of comin_field.c
      function comin_field_find(entry_point, name, domain, access, shape, rank, type) result(handle) bind(c)
         import :: c_char, c_int, c_ptr
         implicit none
         integer(c_int), value :: entry_point
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int), value :: domain
         integer(c_int), value :: access
         integer(c_int), intent(out) :: shape(5)
         integer(c_int), intent(out) :: rank
         integer(c_int), intent(out) :: type
         type(c_ptr) :: handle
      end function comin_field_find

      !> Of ComIn. It is another address as ICON's time levels go round
      function comin_var_get_ptr(handle) result(address) bind(c)
         import :: c_ptr
         implicit none
         type(c_ptr), value :: handle
         type(c_ptr) :: address
      end function comin_var_get_ptr

      !> Of ComIn, likewise
      function comin_var_get_device_ptr(handle) result(address) bind(c)
         import :: c_ptr
         implicit none
         type(c_ptr), value :: handle
         type(c_ptr) :: address
      end function comin_var_get_device_ptr
   end interface

contains

   !> Ask ComIn for a field; in the secondary constructor only
   subroutine find_field(entry_point, name, domain, access, found, errmsg)
      !> Where it is used
      integer, intent(in) :: entry_point
      !> NAME or NAME@device
      character(*), intent(in) :: name
      !> From 1 on
      integer, intent(in) :: domain
      !> COMIN_FLAG_READ, COMIN_FLAG_WRITE or both, of all that use it there
      integer, intent(in) :: access
      !> Receives it
      type(field), intent(out) :: found
      !> Allocated if there is none: why
      character(:), allocatable, intent(out) :: errmsg

      character(12) :: number
      integer(c_int) :: rank, shape(5), type

      if (index(name, "@") > 0 .and. .not. is_on_device(name)) then
         errmsg = trim(name) // ": write NAME or NAME@device"
         return
      end if
      found%is_on_device = is_on_device(name)
      found%handle = comin_field_find(int(entry_point, c_int), host_name(name) // c_null_char, int(domain, c_int), &
         int(merge(ior(access, COMIN_FLAG_DEVICE), access, found%is_on_device), c_int), shape, rank, type)
      if (.not. c_associated(found%handle)) then
         write (number, "(i0)") domain
         errmsg = "ICON has no field " // host_name(name) // " in domain " // trim(number)
         if (found%is_on_device) errmsg = errmsg // ", or does not run on a GPU"
      else if (rank == 0) then
         errmsg = host_name(name) // " is a container of fields: name one of them"
      else if (type == 0) then
         errmsg = host_name(name) // " is neither of double, nor of float, nor of int"
      else
         found%extents = shape(:rank)
         found%type = type
      end if
   end subroutine find_field

   !> For reading
   function in_of(this) result(arg)
      type(field), intent(in) :: this
      type(torch_arg) :: arg

      arg = torch_in(address_of(this), this%extents, trim(dtypes(this%type)))
   end function in_of

   !> For writing
   function out_of(this) result(arg)
      type(field), intent(in) :: this
      type(torch_arg) :: arg

      arg = torch_out(address_of(this), this%extents, trim(dtypes(this%type)))
   end function out_of

   !> The name without what follows @
   function host_name(name) result(plain)
      character(*), intent(in) :: name
      character(:), allocatable :: plain

      plain = name(:scan(name // "@ ", "@ ") - 1)
   end function host_name

   !> NAME@device of NAME, and the other way round
   function elsewhere(name) result(other)
      character(*), intent(in) :: name
      character(:), allocatable :: other

      other = host_name(name)
      if (.not. is_on_device(name)) other = other // on_device
   end function elsewhere

   function is_on_device(name) result(is)
      character(*), intent(in) :: name
      logical :: is

      is = trim(name) == host_name(name) // on_device
   end function is_on_device

   function address_of(this) result(address)
      type(field), intent(in) :: this
      type(c_ptr) :: address

      if (this%is_on_device) then
         address = comin_var_get_device_ptr(this%handle)
      else
         address = comin_var_get_ptr(this%handle)
      end if
   end function address_of
end module comin_fields
