! SPDX-License-Identifier: MIT
!> An array of a problem: kind and shape are known when the program runs, so its elements are in memory of one rank and
!> are described by their address.
module bench_field
   use, intrinsic :: iso_c_binding, only : c_loc, c_ptr
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use ftn_pytorch, only : torch_arg, torch_in, torch_out
   implicit none
   private

   public :: field, read_field

   !> Real array of rank 1 to 4
   type :: field
      !> "float32" or "float64"
      character(8) :: dtype = ""
      integer :: rank = 0
      integer :: extents(4) = 1
      !> The elements; one of the two is associated
      real(real32), pointer, contiguous :: single(:) => null()
      real(real64), pointer, contiguous :: double(:) => null()
   contains
      !> Description as an input or as an output
      procedure :: describe
      !> Address of the first element
      procedure :: address
      !> An array of the same kind and shape, filled with values that no result has
      procedure :: spoiled_copy
      !> Largest difference to another array, relative to the largest value of that
      procedure :: difference
      procedure :: release
   end type field

contains

   !> An array from a file of raw numbers
   subroutine read_field(self, words, folder)
      !> Becomes the array
      type(field), intent(inout) :: self
      !> "NAME DTYPE RANK EXTENTS..."
      character(*), intent(in) :: words
      !> Where NAME.bin is
      character(*), intent(in) :: folder

      character(32) :: name
      integer :: unit

      self%extents = 1
      read (words, *) name, self%dtype, self%rank
      read (words, *) name, self%dtype, self%rank, self%extents(:self%rank)
      call allocate_elements(self)
      open (newunit=unit, file=folder // "/" // trim(name) // ".bin", access="stream", form="unformatted", &
         status="old", action="read")
      if (associated(self%single)) read (unit) self%single
      if (associated(self%double)) read (unit) self%double
      close (unit)
   end subroutine read_field

   subroutine allocate_elements(self)
      type(field), intent(inout) :: self

      self%single => null()
      self%double => null()
      select case (self%dtype)
      case ("float32")
         allocate (self%single(product(self%extents)))
      case ("float64")
         allocate (self%double(product(self%extents)))
      case default
         error stop "problem.txt has an unknown dtype"
      end select
   end subroutine allocate_elements

   function describe(self, is_output) result(arg)
      class(field), intent(in) :: self
      logical, intent(in) :: is_output
      type(torch_arg) :: arg

      associate (n => self%extents(:self%rank))
         if (is_output) arg = torch_out(self%address(), n, trim(self%dtype))
         if (.not. is_output) arg = torch_in(self%address(), n, trim(self%dtype))
      end associate
   end function describe

   function address(self)
      class(field), intent(in) :: self
      type(c_ptr) :: address

      if (associated(self%single)) then
         address = c_loc(self%single)
      else
         address = c_loc(self%double)
      end if
   end function address

   subroutine spoiled_copy(self, copy)
      class(field), intent(in) :: self
      type(field), intent(inout) :: copy

      copy%dtype = self%dtype
      copy%rank = self%rank
      copy%extents = self%extents
      call allocate_elements(copy)
      if (associated(copy%single)) copy%single = -huge(1.0_real32)
      if (associated(copy%double)) copy%double = -huge(1.0_real64)
   end subroutine spoiled_copy

   function difference(self, expected)
      class(field), intent(in) :: self
      type(field), intent(in) :: expected
      real(real64) :: difference

      ! Not a maximum over NaN, which compilers may skip
      if (associated(self%single)) then
         difference = maxval(abs(real(self%single, real64) - expected%single))/maxval(abs(expected%single))
         if (any(self%single /= self%single)) difference = huge(difference)
      else
         difference = maxval(abs(self%double - expected%double))/maxval(abs(expected%double))
         if (any(self%double /= self%double)) difference = huge(difference)
      end if
   end function difference

   subroutine release(self)
      class(field), intent(inout) :: self

      if (associated(self%single)) deallocate (self%single)
      if (associated(self%double)) deallocate (self%double)
   end subroutine release
end module bench_field
