! SPDX-License-Identifier: MIT
!> Columns of air: temperature and humidity, and how they are heated. A step has the same ones in every process
module columns
   implicit none
   private
   public :: n, sample
   integer, parameter :: n = 64

contains

   subroutine sample(step, x, heating)
      integer, intent(in) :: step
      real, intent(out) :: x(2, n), heating(1, n)
      integer :: i, size

      call random_seed(size=size)
      call random_seed(put=[(step + i, i=1, size)])
      call random_number(x)
      x = 2*x - 1
      heating(1, :) = -x(1, :)*(1 + 0.5*tanh(2*x(2, :)))
   end subroutine sample
end module columns
