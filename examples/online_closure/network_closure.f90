! SPDX-License-Identifier: MIT
!> The closure that is a PyTorch network: everything that this example asks of ftn_pytorch is in this file and in
!> picture.f90.
module network_closure
   use ftn_pytorch, only: torch_pymodule, torch_results, torch_arg, torch_in, torch_out
   use lorenz96, only: dp, stencil, gather_stencils
   use closures, only: closure
   implicit none
   private

   public :: network

   type, extends(closure) :: network
      !> One instance of the script, with a network, an optimizer and a buffer of its own
      type(torch_pymodule) :: script
      ! Kept from call to call: the library recognises arrays that stay where they are, and makes no new tensors
      real(dp), allocatable, private :: columns(:, :), flat(:)
   contains
      procedure :: load
      procedure :: evaluate => evaluate_network
      procedure :: learn
      procedure :: steps_done
      procedure :: save
      procedure :: restore
   end type network

contains

   !> Load the script once more, onto a device; what `options` names goes to its setup function
   subroutine load(self, name, script, device, options)
      class(network), intent(inout) :: self
      character(len=*), intent(in) :: name, script, device
      type(torch_arg), target :: options(:)

      self%name = name
      ! The model computes in double, the network in single precision: inputs are converted on the way in, results on
      ! the way out
      call self%script%load(script, config=options, dtype="float32", device=trim(device))
   end subroutine load

   !> One forward pass for all members of an ensemble
   subroutine evaluate_network(self, x, tendency)
      class(network), intent(inout) :: self
      real(dp), intent(in) :: x(:, :)
      real(dp), intent(out) :: tendency(:, :)

      if (allocated(self%flat)) then
         if (size(self%flat) /= size(x)) deallocate (self%flat, self%columns)
      end if
      if (.not. allocated(self%flat)) allocate (self%columns(stencil, size(x)), self%flat(size(x)))

      call gather_stencils(x, self%columns)
      call self%script%forward([torch_in(self%columns)], [torch_out(self%flat)])
      tendency = reshape(self%flat, shape(tendency))
   end subroutine evaluate_network

   !> Hand over the samples of one instant, (stencil, n) and (n), and let the optimizer work.
   !> True once the script has taken all the steps that it was asked for
   logical function learn(self, columns, tendency, loss)
      class(network), intent(inout) :: self
      real(dp), target :: columns(:, :), tendency(:)
      real(dp), intent(out) :: loss

      learn = self%script%train([torch_in(columns)], [torch_in(tendency)], loss)
   end function learn

   !> Optimizer steps so far, by the script's own count
   integer function steps_done(self)
      class(network), intent(inout) :: self

      type(torch_results) :: results

      call self%script%call("progress", results=results)
      call results%scalar("steps", steps_done)
      call results%free()
   end function steps_done

   !> A checkpoint in a folder, which is made: all that the script has learnt, so that another instance may go on
   subroutine save(self, folder)
      class(network), intent(inout) :: self
      character(len=*), intent(in) :: folder

      call self%script%checkpoint(folder, keep=1)
   end subroutine save

   subroutine restore(self, folder)
      class(network), intent(inout) :: self
      character(len=*), intent(in) :: folder

      call self%script%restore(folder)
   end subroutine restore

end module network_closure
