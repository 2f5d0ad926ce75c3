! SPDX-License-Identifier: MIT
!> The C interface of ftn_pytorch: one interface body per function of ftn_pytorch.h, in its order.
!>
!> Who owns what, units, threads and failures are written in the header and nowhere else. Codes of the header keep
!> their names here.
!>
!> Two rules hold for every dummy of type torch_arg, here and in the modules above. It has no intent(in), and it has
!> the target attribute. A torch_arg holds the address of an array that the compiler cannot see: with either rule
!> broken, an optimizer may conclude that the array is out of reach of the call, and the program reads stale values.
module fpt_c
   use, intrinsic :: iso_c_binding, only : c_char, c_double, c_funptr, c_int32_t, c_int64_t, c_null_ptr, c_ptr
   implicit none
   private

   public :: torch_arg
   public :: fpt_version, fpt_init, fpt_keep_lock, fpt_init_device, fpt_error_text, fpt_status_name, fpt_on_warning
   public :: fpt_set_threads, fpt_set_host, fpt_diagnose
   public :: fpt_arg_array, fpt_arg_memory, fpt_arg_text, fpt_arg_name, fpt_pin, fpt_unpin
   public :: fpt_tensor_set, fpt_tensor_arg, fpt_tensor_info, fpt_tensor_data, fpt_tensor_is_set
   public :: fpt_tensor_address, fpt_tensor_free, fpt_tensor_from, fpt_tensor_own, fpt_tensor_disown
   public :: fpt_tensor_end_owner
   public :: fpt_tensor_assign, fpt_tensor_operate, fpt_tensor_fail, fpt_tensor_gradient, fpt_tensor_copy
   public :: fpt_procedure_register
   public :: fpt_scope_begin, fpt_scope_end, fpt_scope_leave, fpt_scope_keep, fpt_scope_autocast, fpt_scope_gradients
   public :: fpt_scope_is_open
   public :: fpt_wrap_create, fpt_wrap_add, fpt_wrap_clear, fpt_wrap_free
   public :: fpt_module_load, fpt_module_reload, fpt_module_has, fpt_module_backend, fpt_module_save
   public :: fpt_module_publish
   public :: fpt_module_checkpoint, fpt_module_restore, fpt_module_forward, fpt_module_forward_wrap, fpt_module_train
   public :: fpt_module_train_wrap, fpt_module_call, fpt_module_call_tensor, fpt_torch_call, fpt_module_create
   public :: fpt_module_free, fpt_module_set_stream, fpt_module_wait
   public :: fpt_results_count, fpt_results_name, fpt_results_find, fpt_results_get, fpt_results_data
   public :: fpt_results_copy, fpt_results_text, fpt_results_free

   !> Highest rank of an array that crosses the boundary
   integer, parameter, public :: FPT_MAX_RANK = 7

   !> Element types
   integer(c_int32_t), parameter, public :: FPT_NONE = 0, FPT_BOOL = 1, FPT_INT8 = 2, FPT_INT16 = 3, FPT_INT32 = 4, &
      FPT_INT64 = 5, FPT_FLOAT32 = 6, FPT_FLOAT64 = 7, FPT_COMPLEX64 = 8, FPT_COMPLEX128 = 9, FPT_TEXT = 10, &
      FPT_UINT8 = 11, FPT_FLOAT16 = 12, FPT_BFLOAT16 = 13, FPT_LOGICAL16 = 14, FPT_LOGICAL32 = 15, FPT_LOGICAL64 = 16

   !> What the script may do with an argument
   integer(c_int32_t), parameter, public :: FPT_IN = 0, FPT_OUT = 1, FPT_COPY = 2

   !> Operators
   integer(c_int32_t), parameter, public :: FPT_ADD = 0, FPT_SUBTRACT = 1, FPT_MULTIPLY = 2, FPT_DIVIDE = 3, &
      FPT_POWER = 4, FPT_EQUAL = 5, FPT_NOT_EQUAL = 6, FPT_LESS = 7, FPT_LESS_EQUAL = 8, FPT_GREATER = 9, &
      FPT_GREATER_EQUAL = 10, FPT_MATMUL = 11

   !> Flags of forward and of torch_module%load
   integer(c_int32_t), parameter, public :: FPT_USE_DEVICE = 1, FPT_USE_INFERENCE_MODE = 2

   !> What is expected of a file
   integer(c_int32_t), parameter, public :: FPT_EXPECT_SCRIPT = 0, FPT_EXPECT_MODEL = 1

   !> Description of one argument: the 256 bytes of fpt_arg. It owns nothing and may be kept, copied and passed again
   type, bind(c) :: torch_arg
      private
      type(c_ptr) :: data = c_null_ptr
      integer(c_int64_t) :: words(31) = 0
   end type torch_arg

   ! ---- library -----------------------------------------------------------------------------------------------------
   interface
      function fpt_version() bind(c) result(text)
         import :: c_ptr
         implicit none
         type(c_ptr) :: text
      end function fpt_version

      function fpt_init(python, python_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         character(kind=c_char), intent(in) :: python(*)
         integer(c_int64_t), value :: python_len
         integer(c_int32_t) :: status
      end function fpt_init

      function fpt_keep_lock(keeps) bind(c) result(status)
         import :: c_int32_t
         implicit none
         integer(c_int32_t), value :: keeps
         integer(c_int32_t) :: status
      end function fpt_keep_lock

      function fpt_init_device(device, device_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         character(kind=c_char), intent(in) :: device(*)
         integer(c_int64_t), value :: device_len
         integer(c_int32_t) :: status
      end function fpt_init_device

      subroutine fpt_error_text(text, length) bind(c)
         import :: c_int64_t, c_ptr
         implicit none
         type(c_ptr), intent(out) :: text
         integer(c_int64_t), intent(out) :: length
      end subroutine fpt_error_text

      function fpt_status_name(status) bind(c) result(text)
         import :: c_int32_t, c_ptr
         implicit none
         integer(c_int32_t), value :: status
         type(c_ptr) :: text
      end function fpt_status_name

      subroutine fpt_on_warning(handler) bind(c)
         import :: c_funptr
         implicit none
         type(c_funptr), value :: handler
      end subroutine fpt_on_warning

      function fpt_set_threads(n) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: n
         integer(c_int32_t) :: status
      end function fpt_set_threads

      function fpt_set_host(values, count) bind(c) result(status)
         import :: c_int32_t, torch_arg
         implicit none
         type(torch_arg), target :: values(*)
         integer(c_int32_t), value :: count
         integer(c_int32_t) :: status
      end function fpt_set_host

      function fpt_diagnose(text, length) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         type(c_ptr), intent(out) :: text
         integer(c_int64_t), intent(out) :: length
         integer(c_int32_t) :: status
      end function fpt_diagnose
   end interface

   ! ---- arguments ---------------------------------------------------------------------------------------------------
   interface
      function fpt_arg_array(arg, data, dtype, rank, extents, strides, access) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr, torch_arg
         implicit none
         type(torch_arg), target :: arg
         type(c_ptr), value :: data
         integer(c_int32_t), value :: dtype, rank
         integer(c_int64_t), intent(in), optional :: extents(*), strides(*)
         integer(c_int32_t), value :: access
         integer(c_int32_t) :: status
      end function fpt_arg_array

      function fpt_arg_memory(arg, data, dtype, dtype_len, rank, extents, access) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, c_ptr, torch_arg
         implicit none
         type(torch_arg), target :: arg
         type(c_ptr), value :: data
         character(kind=c_char), intent(in) :: dtype(*)
         integer(c_int64_t), value :: dtype_len
         integer(c_int32_t), value :: rank
         integer(c_int64_t), intent(in) :: extents(*)
         integer(c_int32_t), value :: access
         integer(c_int32_t) :: status
      end function fpt_arg_memory

      function fpt_arg_text(arg, text, length, access) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         type(torch_arg), target :: arg
         character(kind=c_char), intent(in) :: text(*)
         integer(c_int64_t), value :: length
         integer(c_int32_t), value :: access
         integer(c_int32_t) :: status
      end function fpt_arg_text

      function fpt_arg_name(arg, name, length) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         type(torch_arg), target :: arg
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: length
         integer(c_int32_t) :: status
      end function fpt_arg_name

      function fpt_pin(arg) bind(c) result(status)
         import :: c_int32_t, torch_arg
         implicit none
         type(torch_arg), target :: arg
         integer(c_int32_t) :: status
      end function fpt_pin

      function fpt_unpin(arg) bind(c) result(status)
         import :: c_int32_t, torch_arg
         implicit none
         type(torch_arg), target :: arg
         integer(c_int32_t) :: status
      end function fpt_unpin
   end interface

   ! ---- tensors -----------------------------------------------------------------------------------------------------
   interface
      function fpt_tensor_set(tensor, arg) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), intent(inout) :: tensor
         type(torch_arg), target :: arg
         integer(c_int32_t) :: status
      end function fpt_tensor_set

      function fpt_tensor_arg(tensor, arg) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: tensor
         type(torch_arg), target :: arg
         integer(c_int32_t) :: status
      end function fpt_tensor_arg

      function fpt_tensor_info(tensor, dtype, rank, extents, device) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: tensor
         integer(c_int32_t), intent(inout) :: dtype, rank
         integer(c_int64_t), intent(inout) :: extents(*)
         character(kind=c_char), intent(inout) :: device(*)
         integer(c_int32_t) :: status
      end function fpt_tensor_info

      function fpt_tensor_data(tensor, dtype, rank, data, extents, strides) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: tensor
         integer(c_int32_t), value :: dtype, rank
         type(c_ptr), intent(inout) :: data
         integer(c_int64_t), intent(inout) :: extents(*), strides(*)
         integer(c_int32_t) :: status
      end function fpt_tensor_data

      function fpt_tensor_from(tensor, arg, same_layout) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), intent(inout) :: tensor
         type(torch_arg), target :: arg
         integer(c_int32_t), value :: same_layout
         integer(c_int32_t) :: status
      end function fpt_tensor_from

      subroutine fpt_tensor_own(home, before) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), intent(in) :: home
         integer(c_int64_t), value :: before
      end subroutine fpt_tensor_own

      subroutine fpt_tensor_disown(home, before) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), intent(in) :: home
         integer(c_int64_t), value :: before
      end subroutine fpt_tensor_disown

      subroutine fpt_tensor_end_owner(home) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), intent(inout) :: home
      end subroutine fpt_tensor_end_owner

      function fpt_tensor_assign(left, right) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), intent(inout) :: left
         integer(c_int64_t), value :: right
         integer(c_int32_t) :: status
      end function fpt_tensor_assign

      function fpt_tensor_operate(operation, left, right, scalar, tensor) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int32_t), value :: operation
         integer(c_int64_t), value :: left, right
         type(torch_arg), optional, target :: scalar
         integer(c_int64_t), intent(inout) :: tensor
         integer(c_int32_t) :: status
      end function fpt_tensor_operate

      subroutine fpt_tensor_fail(tensor, status) bind(c)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), intent(inout) :: tensor
         integer(c_int32_t), value :: status
      end subroutine fpt_tensor_fail

      function fpt_tensor_gradient(tensor, gradient) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: tensor
         integer(c_int64_t), intent(inout) :: gradient
         integer(c_int32_t) :: status
      end function fpt_tensor_gradient

      function fpt_tensor_copy(tensor, output, cast) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: tensor
         type(torch_arg), target :: output
         integer(c_int32_t), value :: cast
         integer(c_int32_t) :: status
      end function fpt_tensor_copy

      function fpt_tensor_is_set(tensor) bind(c) result(is_set)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: tensor
         integer(c_int32_t) :: is_set
      end function fpt_tensor_is_set

      function fpt_tensor_address(tensor) bind(c) result(address)
         import :: c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: tensor
         type(c_ptr) :: address
      end function fpt_tensor_address

      subroutine fpt_tensor_free(tensor) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), value :: tensor
      end subroutine fpt_tensor_free
   end interface

   ! ---- scopes ------------------------------------------------------------------------------------------------------
   interface
      function fpt_scope_begin(scope, name, name_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), intent(inout) :: scope
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         integer(c_int32_t) :: status
      end function fpt_scope_begin

      function fpt_scope_end(scope) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: scope
         integer(c_int32_t) :: status
      end function fpt_scope_end

      subroutine fpt_scope_leave(home) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), intent(in) :: home
      end subroutine fpt_scope_leave

      function fpt_scope_keep(scope, tensor) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: scope, tensor
         integer(c_int32_t) :: status
      end function fpt_scope_keep

      function fpt_scope_autocast(scope, device, device_len, dtype, dtype_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: scope
         character(kind=c_char), intent(in) :: device(*)
         integer(c_int64_t), value :: device_len
         character(kind=c_char), intent(in) :: dtype(*)
         integer(c_int64_t), value :: dtype_len
         integer(c_int32_t) :: status
      end function fpt_scope_autocast

      function fpt_scope_gradients(scope, wanted) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: scope
         integer(c_int32_t), value :: wanted
         integer(c_int32_t) :: status
      end function fpt_scope_gradients

      function fpt_scope_is_open() bind(c) result(is_open)
         import :: c_int32_t
         implicit none
         integer(c_int32_t) :: is_open
      end function fpt_scope_is_open
   end interface

   ! ---- procedures --------------------------------------------------------------------------------------------------
   interface
      function fpt_procedure_register(name, name_len, forward, adjoint, context, noutputs) bind(c) result(status)
         import :: c_char, c_funptr, c_int32_t, c_int64_t, c_ptr
         implicit none
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         type(c_funptr), value :: forward, adjoint
         type(c_ptr), value :: context
         integer(c_int32_t), value :: noutputs
         integer(c_int32_t) :: status
      end function fpt_procedure_register
   end interface

   ! ---- argument lists ----------------------------------------------------------------------------------------------
   interface
      function fpt_wrap_create(wrap) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), intent(inout) :: wrap
         integer(c_int32_t) :: status
      end function fpt_wrap_create

      function fpt_wrap_add(wrap, arg) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: wrap
         type(torch_arg), target :: arg
         integer(c_int32_t) :: status
      end function fpt_wrap_add

      function fpt_wrap_clear(wrap) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: wrap
         integer(c_int32_t) :: status
      end function fpt_wrap_clear

      subroutine fpt_wrap_free(wrap) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), value :: wrap
      end subroutine fpt_wrap_free
   end interface

   ! ---- modules -----------------------------------------------------------------------------------------------------
   interface
      function fpt_module_load(module, kind, file, file_len, options, noptions, config, nconfig) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), intent(inout) :: module
         integer(c_int32_t), value :: kind
         character(kind=c_char), intent(in) :: file(*)
         integer(c_int64_t), value :: file_len
         type(torch_arg), target :: options(*)
         integer(c_int32_t), value :: noptions
         type(torch_arg), optional, target :: config(*)
         integer(c_int32_t), value :: nconfig
         integer(c_int32_t) :: status
      end function fpt_module_load

      function fpt_module_reload(module) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         integer(c_int32_t) :: status
      end function fpt_module_reload

      function fpt_module_has(module, name, name_len, has) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         integer(c_int32_t), intent(inout) :: has
         integer(c_int32_t) :: status
      end function fpt_module_has

      function fpt_module_backend(module, text, length) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: module
         type(c_ptr), intent(inout) :: text
         integer(c_int64_t), intent(inout) :: length
         integer(c_int32_t) :: status
      end function fpt_module_backend

      function fpt_module_save(module, file, file_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: file(*)
         integer(c_int64_t), value :: file_len
         integer(c_int32_t) :: status
      end function fpt_module_save

      function fpt_module_checkpoint(module, folder, folder_len, keep, step) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: folder(*)
         integer(c_int64_t), value :: folder_len, keep, step
         integer(c_int32_t) :: status
      end function fpt_module_checkpoint

      function fpt_module_restore(module, file, file_len, fallback, step, found) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: file(*)
         integer(c_int64_t), value :: file_len
         integer(c_int32_t), value :: fallback
         integer(c_int64_t), value :: step
         integer(c_int64_t), intent(inout), optional :: found
         integer(c_int32_t) :: status
      end function fpt_module_restore

      function fpt_module_publish(module, target, network, network_len) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module, target
         character(kind=c_char), intent(in) :: network(*)
         integer(c_int64_t), value :: network_len
         integer(c_int32_t) :: status
      end function fpt_module_publish

      function fpt_module_forward(module, inputs, ninputs, outputs, noutputs, results, flags) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: module
         type(torch_arg), target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         type(torch_arg), optional, target :: outputs(*)
         integer(c_int32_t), value :: noutputs
         integer(c_int64_t), intent(inout), optional :: results
         integer(c_int32_t), value :: flags
         integer(c_int32_t) :: status
      end function fpt_module_forward

      function fpt_module_forward_wrap(module, inputs, output, flags) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module, inputs
         integer(c_int64_t), intent(inout) :: output
         integer(c_int32_t), value :: flags
         integer(c_int32_t) :: status
      end function fpt_module_forward_wrap

      function fpt_module_train(module, inputs, ninputs, targets, ntargets, completed, loss) bind(c) result(status)
         import :: c_double, c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: module
         type(torch_arg), target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         type(torch_arg), target :: targets(*)
         integer(c_int32_t), value :: ntargets
         integer(c_int32_t), intent(inout) :: completed
         real(c_double), intent(inout) :: loss
         integer(c_int32_t) :: status
      end function fpt_module_train

      function fpt_module_train_wrap(module, inputs, target, completed, loss) bind(c) result(status)
         import :: c_double, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module, inputs, target
         integer(c_int32_t), intent(inout) :: completed
         real(c_double), intent(inout) :: loss
         integer(c_int32_t) :: status
      end function fpt_module_train_wrap

      function fpt_module_call(module, name, name_len, inputs, ninputs, outputs, noutputs, results) bind(c) &
         result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         type(torch_arg), optional, target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         type(torch_arg), optional, target :: outputs(*)
         integer(c_int32_t), value :: noutputs
         integer(c_int64_t), intent(inout), optional :: results
         integer(c_int32_t) :: status
      end function fpt_module_call

      function fpt_module_call_tensor(module, name, name_len, inputs, ninputs, tensor) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: module
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         type(torch_arg), optional, target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         integer(c_int64_t), intent(inout) :: tensor
         integer(c_int32_t) :: status
      end function fpt_module_call_tensor

      function fpt_torch_call(name, name_len, inputs, ninputs, outputs, noutputs, results, tensor, layout) bind(c) &
         result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         type(torch_arg), optional, target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         type(torch_arg), optional, target :: outputs(*)
         integer(c_int32_t), value :: noutputs
         integer(c_int64_t), intent(inout), optional :: results, tensor
         integer(c_int32_t), value :: layout
         integer(c_int32_t) :: status
      end function fpt_torch_call

      function fpt_module_set_stream(module, queue, stream, waits) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: module
         integer(c_int32_t), intent(in), optional :: queue
         type(c_ptr), value :: stream
         integer(c_int32_t), value :: waits
         integer(c_int32_t) :: status
      end function fpt_module_set_stream

      function fpt_module_wait(module) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: module
         integer(c_int32_t) :: status
      end function fpt_module_wait

      function fpt_module_create(object, factory, name, name_len, inputs, ninputs) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), intent(inout) :: object
         integer(c_int64_t), value :: factory
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         type(torch_arg), optional, target :: inputs(*)
         integer(c_int32_t), value :: ninputs
         integer(c_int32_t) :: status
      end function fpt_module_create

      subroutine fpt_module_free(module) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), value :: module
      end subroutine fpt_module_free
   end interface

   ! ---- results -----------------------------------------------------------------------------------------------------
   interface
      function fpt_results_count(results, count) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), intent(inout) :: count
         integer(c_int32_t) :: status
      end function fpt_results_count

      function fpt_results_name(results, index, name, length) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), value :: index
         type(c_ptr), intent(inout) :: name
         integer(c_int64_t), intent(inout) :: length
         integer(c_int32_t) :: status
      end function fpt_results_name

      function fpt_results_find(results, name, name_len, index) bind(c) result(status)
         import :: c_char, c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: results
         character(kind=c_char), intent(in) :: name(*)
         integer(c_int64_t), value :: name_len
         integer(c_int32_t), intent(inout) :: index
         integer(c_int32_t) :: status
      end function fpt_results_find

      function fpt_results_get(results, index, tensor) bind(c) result(status)
         import :: c_int32_t, c_int64_t
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), value :: index
         integer(c_int64_t), intent(inout) :: tensor
         integer(c_int32_t) :: status
      end function fpt_results_get

      function fpt_results_data(results, index, dtype, rank, data, extents, strides) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), value :: index, dtype, rank
         type(c_ptr), intent(inout) :: data
         integer(c_int64_t), intent(inout) :: extents(*), strides(*)
         integer(c_int32_t) :: status
      end function fpt_results_data

      function fpt_results_copy(results, index, output, cast) bind(c) result(status)
         import :: c_int32_t, c_int64_t, torch_arg
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), value :: index
         type(torch_arg), target :: output
         integer(c_int32_t), value :: cast
         integer(c_int32_t) :: status
      end function fpt_results_copy

      function fpt_results_text(results, index, text, length) bind(c) result(status)
         import :: c_int32_t, c_int64_t, c_ptr
         implicit none
         integer(c_int64_t), value :: results
         integer(c_int32_t), value :: index
         type(c_ptr), intent(inout) :: text
         integer(c_int64_t), intent(inout) :: length
         integer(c_int32_t) :: status
      end function fpt_results_text

      subroutine fpt_results_free(results) bind(c)
         import :: c_int64_t
         implicit none
         integer(c_int64_t), value :: results
      end subroutine fpt_results_free
   end interface
end module fpt_c
