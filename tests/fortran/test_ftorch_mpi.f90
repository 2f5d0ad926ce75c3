! SPDX-License-Identifier: MIT
!> Each rank runs the model of a program of FTorch with numbers of its own, and rank 0 looks at all results.
program test_ftorch_mpi
   use, intrinsic :: iso_fortran_env, only : real32
   use check, only : expect, finish
   use ftorch
   use mpi_f08
   implicit none

   type(torch_model) :: model
   type(torch_tensor) :: in(1), out(1)
   real(real32), target :: x(5), y(5)
   real(real32) :: all_results(5, 2)
   integer :: rank

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   x = rank + 1
   call torch_tensor_from_array(in(1), x, torch_kCPU)
   call torch_tensor_from_array(out(1), y, torch_kCPU)
   call torch_model_load(model, "ftorch_scaled.pt", torch_kCPU)
   call torch_model_forward(model, in, out)
   call MPI_Gather(y, 5, MPI_REAL, all_results, 5, MPI_REAL, 0, MPI_COMM_WORLD)
   if (rank == 0) then
      call expect(all(all_results(:, 1) == [0, 1, 2, 3, 4]), "results of this rank")
      call expect(all(all_results(:, 2) == [0, 2, 4, 6, 8]), "results of the other one")
   end if
   call MPI_Finalize()
   call finish()
end program test_ftorch_mpi
