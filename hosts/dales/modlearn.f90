! SPDX-License-Identifier: MIT
!> A script learns the length scale of the subgrid closure of DALES while the model runs, or gives it to the model
module modlearn
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   use modfields, only : dthvdz, e120, thvf
   use modglobal, only : checknamelisterror, delta, fname_options, i1, ifnamopt, j1, kmax, lwarmstart, rk3step, rtimee
   use modmpi, only : comm3d, d_mpi_bcast, mpierr, myid
   use modsubgriddata, only : zlt
   implicit none
   private
   public :: initlearn, exitlearn, learn_length, predict_length, predicts, checkpoint_learn

   character(*), parameter :: folder = "checkpoints/rank%r"
   !> "off", "train" or "predict"
   character(16) :: learn_mode = "off"
   !> A script, or, for "predict", a saved recording of one
   character(256) :: learn_file = "closure.py"
   !> "node": one Python serves all ranks of a node
   character(16) :: learn_per = "rank"
   !> A warm start begins with a new network
   logical :: learn_new = .false.
   logical, protected :: learns = .false., predicts = .false.
   type(torch_module), save :: closure

contains

   !> Reads NAMLEARN. In a warm start the network is that of the restart file, by its time.
   subroutine initlearn
      namelist /NAMLEARN/ learn_mode, learn_file, learn_per, learn_new

      if (myid == 0) then
         open (ifnamopt, file=fname_options, status="old")
         read (ifnamopt, NAMLEARN, iostat=mpierr)
         call checknamelisterror(mpierr, ifnamopt, "NAMLEARN")
         close (ifnamopt)
      end if
      call d_mpi_bcast(learn_mode, len(learn_mode), 0, comm3d, mpierr)
      call d_mpi_bcast(learn_file, len(learn_file), 0, comm3d, mpierr)
      call d_mpi_bcast(learn_per, len(learn_per), 0, comm3d, mpierr)
      call d_mpi_bcast(learn_new, 1, 0, comm3d, mpierr)
      learns = learn_mode == "train"
      predicts = learn_mode == "predict"
      if (learn_mode == "off") return
      if (.not. (learns .or. predicts)) error stop "NAMLEARN: learn_mode is off, train or predict"

      call closure%load(trim(learn_file), communicator=comm3d, per=trim(learn_per))
      if (learns .and. lwarmstart .and. .not. learn_new) call closure%restore(folder, step=nint(rtimee))
      if (predicts .and. closure%backend() == "script") call closure%restore(folder)
   end subroutine initlearn

   !> What the length scale depends on, in the cells of this rank without halos
   function state() result(inputs)
      type(torch_arg) :: inputs(4)

      inputs(1:2) = [torch_in(e120(2:i1, 2:j1, 1:kmax)), torch_in(dthvdz(2:i1, 2:j1, 1:kmax))]
      inputs(3:4) = [torch_in(thvf(1:kmax)), torch_in(delta(1:kmax))]
   end function state

   !> A training step with what the closure has just computed, once in a time step
   subroutine learn_length
      real(real64) :: loss

      if (learns .and. rk3step == 3) call closure%train_step(state(), [torch_in(zlt(2:i1, 2:j1, 1:kmax))], loss)
   end subroutine learn_length

   subroutine predict_length
      call closure%forward(state(), [torch_out(zlt(2:i1, 2:j1, 1:kmax))])
   end subroutine predict_length

   !> Beside the restart file of this time
   subroutine checkpoint_learn
      if (learns) call closure%checkpoint(folder, step=nint(rtimee))
   end subroutine checkpoint_learn

   !> Before the communicator is freed
   subroutine exitlearn
      call closure%free()
   end subroutine exitlearn
end module modlearn
