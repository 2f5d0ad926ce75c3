! SPDX-License-Identifier: MIT
!> Models of FTorch on top of those of ftn_pytorch. Any file that torch_module loads is a model.
!>
!> Saved models run without Python, with gradients and parameters too, where the library has its direct path.
module ftorch_model
   use, intrinsic :: iso_c_binding, only : c_associated, c_int, c_int32_t, c_int64_t, c_loc, c_null_ptr, c_ptr
   use fpt_arg, only : torch_arg
   use fpt_c, only : fpt_results_name
   use fpt_ftorch, only : name_of_device, refuse
   use fpt_module, only : torch_module
   use fpt_results, only : handle_of, torch_results
   use fpt_scope, only : torch_scope
   use fpt_status, only : FTN_PYTORCH_OK, give_up, text_at
   use fpt_tensor, only : base => torch_tensor
   use ftorch_tensor, only : has_contents, have_read, torch_tensor
   implicit none
   private

   public :: torch_model, torch_model_load, torch_model_forward, torch_model_save, torch_model_parameters
   public :: torch_model_print_parameters, torch_model_is_training, torch_model_delete

   !> A saved model; load it first. Copies are aliases, which die with the first one that is deleted
   type :: torch_model
      !> Null where there are no contents. It must not be looked into
      type(c_ptr) :: p = c_null_ptr
      type(torch_module), private :: net
      logical, private :: in_training = .false., has_graph = .false.
   contains
      procedure :: print_parameters => torch_model_print_parameters
      procedure :: is_training => torch_model_is_training
   end type torch_model

   !> What p points to
   integer, target, save :: something = 0

contains

   !> Load a model, in whatever format
   subroutine torch_model_load(model, filename, device_type, device_index, requires_grad, is_training)
      !> Receives the model; what it was is released
      type(torch_model), intent(inout) :: model
      !> Path; blanks around it do not count
      character(*), intent(in) :: filename
      !> Where to compute, torch_kCPU
      integer(c_int), intent(in) :: device_type
      !> On which of several devices, from 0; default the first one
      integer(c_int), optional, intent(in) :: device_index
      !> Whether gradients will be asked for, default false. They can be asked for in any case
      logical, optional, intent(in) :: requires_grad
      !> Whether the model is to be in training mode, default false
      logical, optional, intent(in) :: is_training

      character(16) :: device

      call torch_model_delete(model)
      device = name_of_device(device_type)
      if (present(device_index)) device = name_of_device(device_type, int(device_index))
      if (present(is_training)) model%in_training = is_training
      call model%net%load(trim(adjustl(filename)), layout="same", device=trim(device), cast=.true., &
         training=model%in_training)
      if (present(requires_grad)) then
         if (requires_grad) call need_graph(model)
      end if
      model%p = c_loc(something)
   end subroutine torch_model_load

   !> From now on results belong to the graph of the parameters: of a saved model they do once those were asked for
   subroutine need_graph(model)
      !> Loaded model
      type(torch_model), intent(inout) :: model

      type(torch_results) :: parameters
      integer :: ignored

      if (model%has_graph) return
      model%has_graph = .true.
      call model%net%parameters(parameters, stat=ignored)  ! a script may have none
      call parameters%free()
   end subroutine need_graph

   !> The program ends where a model has no contents
   subroutine require_contents(model)
      !> Loaded model
      class(torch_model), intent(in) :: model

      if (.not. c_associated(model%p)) call refuse("the model was never loaded, or is deleted: call torch_model_load")
   end subroutine require_contents

   !> Run the model. With a graph the outputs become what the model returns, else they receive copies
   subroutine torch_model_forward(model, input_tensors, output_tensors, requires_grad)
      !> Loaded model. There is no intent, as FTorch has in, since it is noted that there is a graph
      type(torch_model) :: model
      !> Arguments
      type(torch_tensor), intent(in) :: input_tensors(:)
      !> Receive the results. There is no intent, as FTorch has in, and their contents may become others
      type(torch_tensor), target :: output_tensors(:)
      !> Whether the results have the graph of the computation, default false
      logical, optional, intent(in) :: requires_grad

      type(torch_arg), target :: inputs(size(input_tensors))
      type(torch_results) :: results
      logical :: has_graph
      integer :: i

      call require_contents(model)
      has_graph = .false.
      if (present(requires_grad)) has_graph = requires_grad
      do i = 1, size(inputs)
         inputs(i) = input_tensors(i)%t%arg()
      end do
      if (has_graph) then
         call need_graph(model)
         call model%net%forward(inputs, results)
         call require_count(results, size(output_tensors))
         do i = 1, size(output_tensors)
            call results%get(i, output_tensors(i)%t)
            call has_contents(output_tensors(i))
         end do
         call results%free()
      else
         call forward_copies(model%net, inputs, output_tensors)
      end if
      do i = 1, size(inputs)
         call have_read(input_tensors(i))
      end do
   end subroutine torch_model_forward

   !> Run the model and copy its results into the memory of tensors
   subroutine forward_copies(net, inputs, output_tensors)
      !> Loaded model
      type(torch_module), intent(in) :: net
      !> Arguments
      type(torch_arg), target :: inputs(:)
      !> Receive the results
      type(torch_tensor), intent(in) :: output_tensors(:)

      type(torch_arg), target :: outputs(size(output_tensors))
      type(torch_scope) :: scope
      integer :: i

      do i = 1, size(outputs)
         outputs(i) = output_tensors(i)%t%arg()
      end do
      call scope%begin()
      call scope%no_grad()
      call net%forward(inputs, outputs)
      call scope%end()
   end subroutine forward_copies

   !> As many results as tensors; one result more is none too many
   subroutine require_count(results, expected)
      !> Results of the model
      type(torch_results), intent(in) :: results
      !> How many tensors there are for them
      integer, intent(in) :: expected

      if (results%count() < expected) call refuse("the model has fewer results than there are tensors for them")
   end subroutine require_count

   !> Write the model with its weights
   subroutine torch_model_save(model, filename)
      !> Loaded model
      type(torch_model), intent(in) :: model
      !> Path; blanks around it do not count
      character(*), intent(in) :: filename

      call require_contents(model)
      call model%net%save(trim(adjustl(filename)))
   end subroutine torch_model_save

   !> The parameters of a model: whoever changes them changes the model
   subroutine torch_model_parameters(model, output_tensors)
      !> Loaded model
      type(torch_model), intent(in) :: model
      !> Receive them, one each
      type(torch_tensor), intent(inout) :: output_tensors(:)

      type(torch_results) :: results
      integer :: i

      call require_contents(model)
      call model%net%parameters(results)
      if (results%count() /= size(output_tensors)) then
         call refuse("the number of tensors is not that of the parameters of the model")
      end if
      do i = 1, size(output_tensors)
         call results%get(i, output_tensors(i)%t)
         call has_contents(output_tensors(i))
      end do
      call results%free()
   end subroutine torch_model_parameters

   !> Write the parameters with their names
   subroutine torch_model_print_parameters(self)
      !> Loaded model
      class(torch_model), intent(in) :: self

      type(torch_results) :: results
      type(base) :: parameter
      type(c_ptr) :: address
      integer(c_int64_t) :: length
      integer(c_int32_t) :: status
      integer :: i

      call require_contents(self)
      call self%net%parameters(results)
      do i = 1, results%count()
         status = fpt_results_name(handle_of(results), int(i, c_int32_t), address, length)
         if (status /= FTN_PYTORCH_OK) call give_up(status)
         print "(2a)", text_at(address, length), ":"
         call results%get(i, parameter)
         call parameter%print()
      end do
      call results%free()
   end subroutine torch_model_print_parameters

   !> Whether the model is in training mode
   function torch_model_is_training(self) result(is_training)
      !> Loaded model
      class(torch_model), intent(in) :: self
      logical :: is_training

      call require_contents(self)
      is_training = self%in_training
   end function torch_model_is_training

   !> Release a model; one that was never loaded is fine
   subroutine torch_model_delete(model)
      !> Without contents afterwards
      type(torch_model), intent(inout) :: model

      call model%net%free()
      model%p = c_null_ptr
      model%in_training = .false.
      model%has_graph = .false.
   end subroutine torch_model_delete
end module ftorch_model
