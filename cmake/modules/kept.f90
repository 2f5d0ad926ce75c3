! SPDX-License-Identifier: MIT
! The one source of a library whose objects come from the cache: without a source it has no language.
module fpt_kept
   implicit none
   private
end module fpt_kept
