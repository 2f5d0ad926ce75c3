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
   use picture, only: painter
   use settings, only: options, read_options
   use verdicts, only: verdict_list
   implicit none

   type(options) :: chosen
   type(painter) :: paint
   type(verdict_list) :: claims

   chosen = read_options()
   call paint%open_folder(chosen%plot_script, chosen%folder, chosen%picture)
   ! A network as small as this is slower on many threads than on one
   call ftn_pytorch_set_threads(1)

   call play_act_one(chosen, paint, claims)
   call play_act_two(chosen, paint, claims)
   call paint%draw()

   if (chosen%picture) print "(a)", "", "Pictures: "//chosen%folder//"/forecasts.png and learning.svg"
   if (.not. claims%hold()) stop 1
end program online_closure
