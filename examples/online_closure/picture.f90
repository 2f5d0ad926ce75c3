! SPDX-License-Identifier: MIT
!> A second script in the same program: hands it arrays as they come up, and has it draw them at the end.
module picture
   use ftn_pytorch, only: torch_pymodule, torch_arg, torch_in
   implicit none
   private

   public :: painter

   type :: painter
      type(torch_pymodule), private :: script
      logical, private :: wanted = .false.
   contains
      procedure :: open_folder
      procedure :: keep
      procedure :: draw
   end type painter

contains

   !> Load the script, which makes the output directory. Unless `wanted`, this and all the rest does nothing
   subroutine open_folder(self, script, folder, wanted)
      class(painter), intent(inout) :: self
      character(len=*), intent(in) :: script, folder
      logical, intent(in) :: wanted

      self%wanted = wanted
      if (wanted) call self%script%load(script, config=[torch_in("output", folder)])
   end subroutine open_folder

   !> Named arrays and numbers for the picture; the script copies them
   subroutine keep(self, items)
      class(painter), intent(inout) :: self
      type(torch_arg), target :: items(:)

      if (self%wanted) call self%script%call("keep", items)
   end subroutine keep

   subroutine draw(self)
      class(painter), intent(inout) :: self

      if (self%wanted) call self%script%call("draw")
   end subroutine draw

end module picture
