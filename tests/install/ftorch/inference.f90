! SPDX-License-Identifier: MIT
!> Part of a library that uses FTorch
module inference
   use ftorch, only : torch_model
   implicit none
   private

   type(torch_model), public :: model
end module inference
