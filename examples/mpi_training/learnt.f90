! SPDX-License-Identifier: MIT
!> The network on the Fortran side: all ranks call these procedures together.
module learnt
   use, intrinsic :: iso_fortran_env, only : real64
   use domains, only : domain
   use ftn_pytorch, only : FTN_PYTORCH_ERR_NO_CHECKPOINT, FTN_PYTORCH_OK, torch_in, torch_out, torch_pymodule
   implicit none
   private

   public :: open_network, close_network, learn, is_equal_on_all_ranks, predicted, restore_network, &
      write_network

   ! A procedure that the transport calls has no other way to its network
   type(torch_pymodule), save :: model

contains

   !> One network for all ranks of the domain; per "node" or "rank" one Python
   subroutine open_network(script, log, on, per)
      character(*), intent(in) :: script, log, per
      type(domain), intent(in) :: on

      call model%load(script, config=[torch_in("log", log)], dtype="float32", cast=.true., &
         communicator=on%communicator, per=per)
   end subroutine open_network

   subroutine close_network()
      call model%free()
   end subroutine close_network

   !> One step of the optimizer with the faces of all ranks
   real(real64) function learn(d, target) result(loss)
      real(real64), intent(in), target :: d(:, :), target(:)

      call model%train_step([torch_in(d)], [torch_in(target)], loss)
   end function learn

   !> The correction that the network predicts; no rank needs another one for it
   function predicted(d) result(added)
      real(real64), intent(in), target, contiguous :: d(:, :)
      real(real64) :: added(size(d, 2))

      call model%forward([torch_in(d)], [torch_out(added)])
   end function predicted

   !> Whether there is one network, bit for bit
   logical function is_equal_on_all_ranks() result(is_equal)
      character(:), allocatable :: errmsg
      integer :: stat

      call model%call("require_equal", stat=stat, errmsg=errmsg)
      is_equal = stat == FTN_PYTORCH_OK
      if (.not. is_equal) print "(a)", errmsg
   end function is_equal_on_all_ranks

   subroutine write_network(folder, step)
      character(*), intent(in) :: folder
      integer, intent(in) :: step

      call model%checkpoint(folder//"/rank%r", keep=2, step=step)
   end subroutine write_network

   !> The step that all ranks go on from, 0 if they begin
   integer function restore_network(folder) result(found)
      character(*), intent(in) :: folder

      character(:), allocatable :: errmsg
      integer :: stat

      call model%restore(folder//"/rank%r", found=found, stat=stat, errmsg=errmsg)
      if (stat == FTN_PYTORCH_ERR_NO_CHECKPOINT) then
         found = 0
      else if (stat /= FTN_PYTORCH_OK) then
         print "(a)", errmsg
         error stop "the network cannot be restored"
      end if
   end function restore_network
end module learnt
