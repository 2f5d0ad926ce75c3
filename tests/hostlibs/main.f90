! SPDX-License-Identifier: MIT
program main
   use host, only : run_all
   implicit none

   call run_all()
end program main
