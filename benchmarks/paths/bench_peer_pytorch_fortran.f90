! SPDX-License-Identifier: MIT
!> The same problems through pytorch-fortran, by its public interface: its TorchScript class and its script class.
!>
!> Inputs are described once and results copied into the array that the other paths deliver to. It reverses the axes of
!> all arrays, trains TorchScript with gradient descent only, and opens one script in a process, which gets no
!> configuration.
module bench_peer
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use bench_field, only : field
   use bench_problem, only : problem
   use torch_ftn, only : module_use_inference_mode, torch_module, torch_pymodule, torch_tensor, torch_tensor_wrap
   implicit none
   private

   public :: peer_model, peer_load, peer_call, peer_free

   character(*), parameter :: script_path = "pytorch-fortran-script"
   character(*), parameter, public :: peer_paths = "pytorch-fortran " // script_path

   !> One of them is associated
   type :: ranked_array
      real(real32), pointer, contiguous :: single2(:, :) => null(), single4(:, :, :, :) => null()
      real(real64), pointer, contiguous :: double1(:) => null(), double2(:, :) => null()
   end type ranked_array

   !> Its finalizers release what was never made, too, and fail: so each object is allocated when it is made
   type :: peer_model
      type(torch_module), pointer :: saved => null()
      type(torch_tensor_wrap), pointer :: inputs => null()
      type(torch_tensor), pointer :: result => null(), target => null()
      type(ranked_array) :: output
      logical :: trains = .false., uses_script = .false.
   end type peer_model

   !> Never released: a script cannot be opened a second time
   type(torch_pymodule), pointer :: script_module => null()

contains

   subroutine peer_load(self, path, problem_, output, layout, script, errmsg)
      type(peer_model), intent(inout) :: self
      type(problem), intent(in) :: problem_
      type(field), intent(in) :: output
      character(*), intent(in) :: path, layout, script
      character(:), allocatable, intent(out) :: errmsg

      integer :: i

      errmsg = ""
      self%uses_script = path == script_path
      self%trains = problem_%trains
      if (.not. (problem_%has_output .or. self%trains)) errmsg = "pytorch-fortran has no call without a result"
      if (layout /= "reversed") errmsg = "pytorch-fortran has no other order of axes than the reversed one"
      if (self%trains .and. .not. self%uses_script .and. problem_%optimizer /= "sgd") then
         errmsg = "pytorch-fortran has no optimizer " // trim(problem_%optimizer) // " for TorchScript"
      end if
      if (errmsg /= "") return

      if (self%uses_script) then
         call open_script(script, problem_)
      else
         allocate (self%saved)
         call self%saved%load(problem_%model // ".pt")
         if (self%trains) call self%saved%create_optimizer_sgd(real(problem_%rate, real32))
      end if
      allocate (self%inputs)
      call self%inputs%create()
      do i = 1, problem_%input_count
         call add(self%inputs, ranked(problem_%inputs(i)))
      end do
      if (self%trains) then
         allocate (self%target)
         call wrap(self%target, ranked(problem_%target))
      else
         self%output = ranked(output)
         allocate (self%result)
         call wrap(self%result, self%output)
      end if
   end subroutine peer_load

   !> The script beside script.py. Its hook for saving is the only one that gets a text, so that tells it the problem
   subroutine open_script(script, problem_)
      character(*), intent(in) :: script
      type(problem), intent(in) :: problem_

      character(16) :: number

      if (.not. associated(script_module)) then
         allocate (script_module)
         call script_module%load(script(:index(script, "/", back=.true.)) // "script_pytorch_fortran.py")
      end if
      write (number, "(i0)") problem_%size
      call script_module%save(problem_%case // " " // trim(number) // " " // problem_%folder)
   end subroutine open_script

   subroutine peer_call(self, loss)
      type(peer_model), intent(inout) :: self
      real(real64), intent(inout) :: loss

      real(real32) :: value
      logical :: completed

      if (self%trains) then
         if (self%uses_script) then
            completed = script_module%train(self%inputs, self%target, value)
         else
            call self%saved%train(self%inputs, self%target, value)
         end if
         loss = value
         return
      end if
      if (self%uses_script) then
         call script_module%forward(self%inputs, self%result)
      else
         call self%saved%forward(self%inputs, self%result, module_use_inference_mode)
      end if
      call copy_to(self%result, self%output)
   end subroutine peer_call

   subroutine peer_free(self)
      type(peer_model), intent(inout) :: self

      if (associated(self%inputs)) deallocate (self%inputs)
      if (associated(self%result)) deallocate (self%result)
      if (associated(self%target)) deallocate (self%target)
      if (associated(self%saved)) deallocate (self%saved)
   end subroutine peer_free

   !> Memory of an array with its rank. The cases have no other ranks
   function ranked(array) result(view)
      type(field), intent(in) :: array
      type(ranked_array) :: view

      associate (n => array%extents)
         if (array%dtype == "float32") then
            if (array%rank == 2) view%single2(1:n(1), 1:n(2)) => array%single
            if (array%rank == 4) view%single4(1:n(1), 1:n(2), 1:n(3), 1:n(4)) => array%single
         else
            if (array%rank == 1) view%double1 => array%double
            if (array%rank == 2) view%double2(1:n(1), 1:n(2)) => array%double
         end if
      end associate
   end function ranked

   subroutine add(inputs, view)
      type(torch_tensor_wrap), intent(inout) :: inputs
      type(ranked_array), intent(in) :: view

      if (associated(view%single2)) call inputs%add_array(view%single2)
      if (associated(view%single4)) call inputs%add_array(view%single4)
      if (associated(view%double1)) call inputs%add_array(view%double1)
      if (associated(view%double2)) call inputs%add_array(view%double2)
   end subroutine add

   subroutine wrap(tensor, view)
      type(torch_tensor), intent(inout) :: tensor
      type(ranked_array), intent(in) :: view

      if (associated(view%single2)) call tensor%from_array(view%single2)
      if (associated(view%single4)) call tensor%from_array(view%single4)
      if (associated(view%double1)) call tensor%from_array(view%double1)
      if (associated(view%double2)) call tensor%from_array(view%double2)
   end subroutine wrap

   !> The result of a call is memory of its own
   subroutine copy_to(tensor, view)
      type(torch_tensor), intent(inout) :: tensor
      type(ranked_array), intent(inout) :: view

      type(ranked_array) :: found

      if (associated(view%single2)) then
         call tensor%to_array(found%single2)
         view%single2 = found%single2
      else if (associated(view%single4)) then
         call tensor%to_array(found%single4)
         view%single4 = found%single4
      else if (associated(view%double1)) then
         call tensor%to_array(found%double1)
         view%double1 = found%double1
      else
         call tensor%to_array(found%double2)
         view%double2 = found%double2
      end if
   end subroutine copy_to
end module bench_peer
