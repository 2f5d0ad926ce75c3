! SPDX-License-Identifier: MIT
!> Online learning of a closure: the two-scale system of Lorenz (1996) trains a network while it runs.
!>
!>     online_closure <closure.py> <output directory> ["seeds=3 steps=12000 device='cpu' picture=T"]
!>
!> Ends with exit code 1 if one of the claims that it prints does not hold.
program online_closure
   use act_one, only: play_act_one
   use act_two, only: play_act_two
   use ftn_pytorch, only: ftn_pytorch_set_threads
   use picture, only: draw, open_picture
   use settings, only: read_options
   use verdicts, only: all_hold
   implicit none

   call read_options()
   call open_picture()
   ! A network as small as this is slower on many threads than on one
   call ftn_pytorch_set_threads(1)

   call play_act_one()
   call play_act_two()
   call draw()
   if (.not. all_hold) stop 1
end program online_closure
