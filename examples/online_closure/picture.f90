! SPDX-License-Identifier: MIT
!> A second script in the same program: hands it arrays as they come up, and has it draw them at the end.
module picture
   use ftn_pytorch, only: torch_pymodule, torch_arg, torch_in
   use settings, only: folder, is_wanted => picture, script
   implicit none
   private

   public :: open_picture, keep, draw

   type(torch_pymodule) :: plot

contains

   !> Load the script, which makes the output directory. Without a picture, this and all the rest does nothing
   subroutine open_picture()
      if (is_wanted) call plot%load(script(:index(script, "/", back=.true.))//"plot.py", &
         config=[torch_in("output", folder)])
   end subroutine open_picture

   !> Named arrays and numbers for the picture; the script copies them
   subroutine keep(items)
      type(torch_arg), target :: items(:)

      if (is_wanted) call plot%call("keep", items)
   end subroutine keep

   subroutine draw()
      if (.not. is_wanted) return
      call plot%call("draw")
      print "(a)", "", "Pictures: "//folder//"/forecasts.png and learning.svg"
   end subroutine draw

end module picture
