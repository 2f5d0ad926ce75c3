! SPDX-License-Identifier: MIT
!> Models of FTorch on top of those of ftn_pytorch. Any file that torch_module loads is a model.
!>
!> Saved models run without Python, with gradients and parameters too, where the library has its direct path.
module ftorch_model
   use, intrinsic :: iso_c_binding, only : c_associated, c_f_pointer, c_int, c_int32_t, c_int64_t, c_loc, &
      c_null_char, c_null_ptr, c_ptr
   use fpt_arg, only : torch_arg
   use fpt_c, only : fpt_module_backend, fpt_results_name
   use fpt_call, only : torch_call
   use fpt_codes, only : FTN_PYTORCH_ERR_SHAPE
   use fpt_ftorch, only : facts, facts_of, name_of_device, refuse
   use fpt_module, only : torch_module
   use fpt_object, only : handle_of_object => handle_of
   use fpt_results, only : handle_of, torch_results
   use fpt_scope, only : torch_scope
   use fpt_status, only : FTN_PYTORCH_OK, give_up, text_at
   use fpt_tensor, only : base => torch_tensor
   use ftorch_devices, only : torch_kCPU
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
      !> Number of outputs that fit all results as they are; 0 as long as that is not known, and any for a script
      integer, private :: fitting = 0
   contains
      procedure :: print_parameters => torch_model_print_parameters
      procedure :: is_training => torch_model_is_training
   end type torch_model

   !> Scripts write into outputs by themselves, or get results checked as those of ftn_pytorch
   integer, parameter :: any_number = -1

   !> What p points to
   integer, target, save :: something = 0

   !> Run a model: lists of tensors, or one tensor in place of a list
   interface torch_model_forward
      module procedure forward_lists, forward_single, forward_to_single, forward_from_single
   end interface torch_model_forward

contains

   !> Load a model, in whatever format
   subroutine torch_model_load(model, filename, device_type, device_index, requires_grad, is_training)
      !> Receives the model; what it was is released
      type(torch_model), intent(inout) :: model
      !> Path; blanks around it do not count, nor what follows c_null_char
      character(*), intent(in) :: filename
      !> Where to compute, default torch_kCPU
      integer(c_int), optional, intent(in) :: device_type
      !> On which of several devices, from 0; default the first one
      integer(c_int), optional, intent(in) :: device_index
      !> Whether gradients will be asked for, default false. They can be asked for in any case
      logical, optional, intent(in) :: requires_grad
      !> Whether the model is to be in training mode, default false
      logical, optional, intent(in) :: is_training

      character(16) :: device
      integer(c_int) :: place
      integer :: length

      call torch_model_delete(model)
      place = torch_kCPU
      if (present(device_type)) place = device_type
      device = name_of_device(place)
      if (present(device_index)) device = name_of_device(place, int(device_index))
      length = index(filename, c_null_char) - 1
      if (length < 0) length = len(filename)
      if (present(is_training)) model%in_training = is_training
      call model%net%load(trim(adjustl(filename(:length))), layout="same", device=trim(device), cast=.true., &
         training=model%in_training)
      if (present(requires_grad)) then
         if (requires_grad) call need_graph(model)
      end if
      if (is_script(model%net)) model%fitting = any_number
      model%p = c_loc(something)
   end subroutine torch_model_load

   !> Whether a file is a Python script
   function is_script(net) result(found)
      !> Loaded model
      type(torch_module), intent(in) :: net
      logical :: found

      type(c_ptr) :: address
      integer(c_int64_t) :: length

      found = .false.
      if (fpt_module_backend(handle_of_object(net), address, length) == FTN_PYTORCH_OK) then
         found = text_at(address, length) == "script"
      end if
   end function is_script

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
   subroutine forward_lists(model, input_tensors, output_tensors, requires_grad)
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
         call forward_copies(model, inputs, output_tensors)
      end if
      do i = 1, size(inputs)
         call have_read(input_tensors(i))
      end do
   end subroutine forward_lists

   !> The same with one tensor on both sides
   subroutine forward_single(model, input_tensors, output_tensors, requires_grad)
      !> Loaded model
      type(torch_model) :: model
      !> Argument
      type(torch_tensor), intent(in), target :: input_tensors
      !> Receives the result
      type(torch_tensor), target :: output_tensors
      !> Whether the result has the graph of the computation, default false
      logical, optional, intent(in) :: requires_grad

      call forward_lists(model, list_of(input_tensors), list_of(output_tensors), requires_grad)
   end subroutine forward_single

   !> The same with one result
   subroutine forward_to_single(model, input_tensors, output_tensors, requires_grad)
      !> Loaded model
      type(torch_model) :: model
      !> Arguments
      type(torch_tensor), intent(in) :: input_tensors(:)
      !> Receives the result
      type(torch_tensor), target :: output_tensors
      !> Whether the result has the graph of the computation, default false
      logical, optional, intent(in) :: requires_grad

      call forward_lists(model, input_tensors, list_of(output_tensors), requires_grad)
   end subroutine forward_to_single

   !> The same with one argument
   subroutine forward_from_single(model, input_tensors, output_tensors, requires_grad)
      !> Loaded model
      type(torch_model) :: model
      !> Argument
      type(torch_tensor), intent(in), target :: input_tensors
      !> Receive the results
      type(torch_tensor), target :: output_tensors(:)
      !> Whether the results have the graph of the computation, default false
      logical, optional, intent(in) :: requires_grad

      call forward_lists(model, list_of(input_tensors), output_tensors, requires_grad)
   end subroutine forward_from_single

   !> A tensor as a list of one: the variable itself, since a result may go there
   function list_of(tensor) result(list)
      !> Any tensor
      type(torch_tensor), intent(in), target :: tensor
      type(torch_tensor), pointer :: list(:)

      call c_f_pointer(c_loc(tensor), list, [1])
   end function list_of

   !> Run the model and copy its results into the memory of tensors. As with FTorch, a saved model may have more results
   !> than there are tensors, and a scalar may go into a tensor of one element
   subroutine forward_copies(model, inputs, output_tensors)
      !> Loaded model
      type(torch_model), intent(inout) :: model
      !> Arguments
      type(torch_arg), target :: inputs(:)
      !> Receive the results
      type(torch_tensor), intent(in) :: output_tensors(:)

      type(torch_arg), target :: outputs(size(output_tensors))
      type(torch_results) :: results
      type(torch_scope) :: scope
      integer :: i

      call scope%begin()
      call scope%no_grad()
      if (model%fitting == size(output_tensors) .or. model%fitting == any_number) then
         do i = 1, size(outputs)
            outputs(i) = output_tensors(i)%t%arg()
         end do
         call model%net%forward(inputs, outputs)
      else
         call model%net%forward(inputs, results)
         call require_count(results, size(output_tensors))
         do i = 1, size(output_tensors)
            call copy_result(results, i, output_tensors(i))
         end do
         model%fitting = size(output_tensors)
         if (results%count() /= size(output_tensors) .or. has_scalar(results)) model%fitting = 0
         call results%free()
      end if
      call scope%end()
   end subroutine forward_copies

   !> Copy a result into the memory of a tensor, of the same shape or both of one element
   subroutine copy_result(results, i, output)
      !> Results of the model
      type(torch_results), intent(in) :: results
      !> Number of the result
      integer, intent(in) :: i
      !> Receives it
      type(torch_tensor), intent(in) :: output

      type(base) :: scalar
      type(facts) :: place
      character(:), allocatable :: reason
      integer :: copied, got

      call results%copy_to(i, output%t%arg(), cast=.true., stat=copied, errmsg=reason)
      if (copied == FTN_PYTORCH_OK) return
      if (copied == FTN_PYTORCH_ERR_SHAPE) then
         place = facts_of(output%t)
         call results%get(i, scalar, stat=got)
         if (got == FTN_PYTORCH_OK) then
            if (scalar%rank() == 0 .and. all(place%extents(:place%rank) == 1)) then
               call torch_call("Tensor.copy_", [output%t%arg(), scalar%arg()])
               return
            end if
         end if
      end if
      call give_up(int(copied, c_int32_t), reason)
   end subroutine copy_result

   !> Whether one of the results is a scalar
   function has_scalar(results) result(found)
      !> Results of the model
      type(torch_results), intent(in) :: results
      logical :: found

      type(base) :: tensor
      integer :: i, stat

      found = .false.
      do i = 1, results%count()
         call results%get(i, tensor, stat=stat)
         if (stat == FTN_PYTORCH_OK) found = found .or. tensor%rank() == 0
      end do
   end function has_scalar

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
      model%fitting = 0
   end subroutine torch_model_delete
end module ftorch_model
