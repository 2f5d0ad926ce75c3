! SPDX-License-Identifier: MIT
!> The same operations on each file by each path: operations FILE PATH [FILE PATH]... writes into folders "FILE.PATH",
!> which hold the files. See module seen for what it writes.
!>
!> PATH is direct, python, rank, node or gpu: what a program chooses by options of load. One process runs all, since a
!> process of its own for each would import torch each time.
program operations
   use mpi_f08
   use calls, only : call_functions, describe_wrongly, predict
   use kinds, only : pass_empty_arrays, pass_other_kinds
   use objects, only : free_handles, make_optimizers
   use opening, only : open_it, open_otherwise, reload
   use parts, only : average, use_losses
   use seen
   use state, only : keep
   use tensors, only : use_tensors
   use training, only : train
   implicit none

   character(20) :: words(2)
   integer :: i

   call MPI_Init()
   do i = 1, command_argument_count(), 2
      call get_command_argument(i, words(1))
      call get_command_argument(i + 1, words(2))
      call begin(trim(words(1)), trim(words(2)))
      theme = "settings"
      call tell_settings("before")
      theme = "load"
      call open_it()
      call saw("load")
      call predict()
      call describe_wrongly()
      call use_tensors()
      call call_functions()
      call pass_other_kinds()
      call pass_empty_arrays()
      call free_handles()
      call use_losses()
      if (path /= "gpu") then ! where it trains and saves nothing
         call train()
         call keep()
         call average()
      end if
      call make_optimizers()
      call reload()
      if (file /= "model.py" .or. path /= "gpu") call open_otherwise() ! a process more, which imports torch
      call model%free()
      theme = "settings"
      call tell_settings("after")
      call finish()
   end do
   call MPI_Finalize()
end program operations
