! SPDX-License-Identifier: MIT
!> What the modules of FTorch share: names of types and devices, copies into tensors, nameless results, failures.
!>
!> FTorch shows an array (nx, ny) to torch as a tensor (nx, ny), which is the layout "same" of this library.
module fpt_ftorch
   use, intrinsic :: iso_c_binding, only : c_f_pointer, c_int, c_int32_t, c_int64_t, c_ptr
   use fpt_arg, only : torch_arg
   use fpt_c, only : fpt_arg_array, fpt_tensor_let, FPT_FLOAT16, FPT_FLOAT32, FPT_FLOAT64, FPT_INT16, FPT_INT32, &
      FPT_INT64, FPT_INT8, FPT_MAX_RANK, FPT_OUT, FPT_UINT8
   use fpt_codes, only : FTN_PYTORCH_ERR_ARGUMENT, FTN_PYTORCH_OK
   use fpt_status, only : give_up
   use fpt_tensor, only : base => torch_tensor, facts, get_facts, handle_of
   use ftorch_devices, only : torch_kCPU, torch_kCUDA, torch_kMPS, torch_kXPU
   use ftorch_types, only : torch_kFloat16, torch_kFloat32, torch_kFloat64, torch_kInt16, torch_kInt32, torch_kInt64, &
      torch_kInt8, torch_kMean, torch_kUInt8
   implicit none
   private

   public :: describe, reorder, facts, facts_of, type_codes, type_names, type_bytes
   public :: name_of_device, number_of_device, index_of_device, number_of_type, require_type
   public :: refuse, into, row_of, fpt_ftorch_place

   !> Element types in the order of their numbers in FTorch: codes of the core, names of torch, sizes in bytes
   integer(c_int32_t), parameter :: type_codes(torch_kUInt8:torch_kFloat64) = &
      [FPT_UINT8, FPT_INT8, FPT_INT16, FPT_INT32, FPT_INT64, FPT_FLOAT16, FPT_FLOAT32, FPT_FLOAT64]
   character(*), parameter :: type_names(torch_kUInt8:torch_kFloat64) = &
      [character(7) :: "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]
   integer(c_int64_t), parameter :: type_bytes(torch_kUInt8:torch_kFloat64) = [1, 1, 2, 4, 8, 2, 4, 8]

   interface
      !> Room for the extents of a tensor, in ftorch_places.c
      function fpt_ftorch_row() bind(c) result(row)
         import :: c_ptr
         implicit none
         type(c_ptr) :: row
      end function fpt_ftorch_row

      !> The tensor that was read at an address before, in ftorch_places.c
      function fpt_ftorch_place(home, handle) bind(c) result(before)
         import :: c_int64_t, c_ptr
         implicit none
         type(c_ptr), value :: home
         integer(c_int64_t), value :: handle
         integer(c_int64_t) :: before
      end function fpt_ftorch_place
   end interface

contains

   !> End the program with the reason
   subroutine refuse(reason)
      !> What is wrong, and what to do
      character(*), intent(in) :: reason

      call give_up(int(FTN_PYTORCH_ERR_ARGUMENT, c_int32_t), reason)
   end subroutine refuse

   !> End the program unless a number is that of an element type
   subroutine require_type(dtype)
      !> One of torch_kInt8, ...
      integer(c_int), intent(in) :: dtype

      if (dtype < torch_kUInt8 .or. dtype > torch_kFloat64) then
         call refuse("there is no such element type: use torch_kFloat32 or another number of ftorch_types")
      end if
   end subroutine require_type

   !> What a tensor is: facts that need no torch. The program ends where there is none
   function facts_of(tensor) result(found)
      !> Tensor with contents
      type(base), intent(in) :: tensor
      type(facts) :: found

      integer(c_int32_t) :: status

      call get_facts(tensor, found, status)
      if (status /= FTN_PYTORCH_OK) call give_up(status)
   end function facts_of

   !> Number of an element type in FTorch, by its code in the core. The program ends where FTorch has none
   function number_of_type(code) result(number)
      !> FPT_FLOAT32, ...
      integer(c_int32_t), intent(in) :: code
      integer(c_int) :: number

      number = findloc(type_codes, code, dim=1) - 1_c_int
      if (number < 0) call refuse("FTorch has no number for the element type of the tensor: ask tensor%t%dtype()")
   end function number_of_type

   !> Describe memory whose elements follow each other. What is wrong with it is recorded, and reported where the
   !> description is used; a layout that is none ends the program
   subroutine describe(described, data, code, bytes, extents, layout)
      !> Receives the description
      type(torch_arg), target :: described
      !> First element
      type(c_ptr), intent(in) :: data
      !> FPT_FLOAT32, ...
      integer(c_int32_t), intent(in) :: code
      !> Size of an element
      integer(c_int64_t), intent(in) :: bytes
      !> Extents of the tensor
      integer(c_int64_t), intent(in) :: extents(:)
      !> Its axes, from the one whose elements are neighbours to the one with the largest steps
      integer(c_int32_t), intent(in) :: layout(:)

      integer(c_int64_t) :: strides(size(extents)), step
      integer(c_int32_t) :: status
      integer :: i

      if (size(layout) /= size(extents)) call refuse("the layout needs one number for each axis")
      step = bytes
      strides = 0
      do i = 1, size(layout)
         if (layout(i) < 1 .or. layout(i) > size(extents)) call refuse("a number of the layout is no axis")
         if (strides(layout(i)) /= 0) call refuse("the layout names an axis twice")
         strides(layout(i)) = step
         step = step*max(extents(layout(i)), 1_c_int64_t)
      end do
      status = fpt_arg_array(described, data, code, size(extents, kind=c_int32_t), extents, strides, FPT_OUT)
   end subroutine describe

   !> Describe an array in another order of its axes
   subroutine reorder(described, data, code, bytes, extents, is_whole, layout)
      !> The array in its own order, which may be the one that is asked for
      type(torch_arg), target :: described
      !> First element
      type(c_ptr), intent(in) :: data
      !> FPT_FLOAT32, ...
      integer(c_int32_t), intent(in) :: code
      !> Size of an element
      integer(c_int64_t), intent(in) :: bytes
      !> Extents of the array
      integer(c_int64_t), intent(in) :: extents(:)
      !> Whether its elements follow each other
      logical, intent(in) :: is_whole
      !> Axes, from the one whose elements are neighbours to the one with the largest steps; others do not count
      integer(c_int32_t), intent(in) :: layout(:)

      integer :: axes, i

      axes = min(size(layout), size(extents))
      if (axes == size(extents)) then
         if (all(layout(:axes) == [(i, i=1, axes)])) return
      end if
      if (.not. is_whole) then
         call refuse("an array whose elements do not follow each other has one layout only: pass none")
      end if
      call describe(described, data, code, bytes, extents, layout(:axes))
   end subroutine reorder

   !> A device as torch calls it, "cuda:1"
   function name_of_device(device_type, device_index) result(name)
      !> One of torch_kCPU, ...
      integer(c_int), intent(in) :: device_type
      !> Which of several, from 0; absent or negative: the first one
      integer, intent(in), optional :: device_index
      character(16) :: name

      name = ""
      select case (device_type)
      case (torch_kCPU)
         name = "cpu"
      case (torch_kCUDA)
         name = "cuda"
      case (torch_kXPU)
         name = "xpu"
      case (torch_kMPS)
         name = "mps"
      case default
         call refuse("there is no such device type: use torch_kCPU, torch_kCUDA, torch_kXPU or torch_kMPS")
      end select
      if (.not. present(device_index)) return
      if (device_type == torch_kCPU .or. device_type == torch_kMPS .or. device_index < 0) return
      write (name(len_trim(name) + 1:), "(':', i0)") device_index
   end function name_of_device

   !> Kind of a device by its name in torch
   pure function number_of_device(name) result(number)
      !> "cpu" or "cuda:0"
      character(*), intent(in) :: name
      integer(c_int) :: number

      select case (name(1:min(3, len(name))))
      case ("cud")
         number = torch_kCUDA
      case ("xpu")
         number = torch_kXPU
      case ("mps")
         number = torch_kMPS
      case default
         number = torch_kCPU
      end select
   end function number_of_device

   !> Which of several devices, by its name in torch; -1 where there is one only
   pure function index_of_device(name) result(number)
      !> "cpu" or "cuda:0"
      character(*), intent(in) :: name
      integer(c_int) :: number

      integer :: colon

      number = -1
      colon = index(name, ":")
      if (colon > 0) read (name(colon + 1:), *) number
   end function index_of_device

   !> Let a tensor have values, their graph and requires_grad, in the memory that it has
   subroutine into(tensor, what, first, second, reduction)
      !> Tensor with contents
      type(base), intent(in) :: tensor
      !> FPT_VALUES, ...
      integer(c_int32_t), intent(in) :: what
      !> What the values are of, and the target of a loss
      type(base), intent(in) :: first
      type(base), intent(in), optional :: second
      !> Of a loss
      integer(c_int32_t), intent(in), optional :: reduction

      integer(c_int64_t) :: target_of_loss
      integer(c_int32_t) :: status, reduced

      target_of_loss = 0
      if (present(second)) target_of_loss = handle_of(second)
      reduced = torch_kMean
      if (present(reduction)) reduced = reduction
      status = fpt_tensor_let(what, handle_of(tensor), handle_of(first), target_of_loss, reduced)
      if (status /= FTN_PYTORCH_OK) call give_up(status)
   end subroutine into

   !> Numbers in a place that lives on, as FTorch returns them; it is used again after 63 others of the thread
   function row_of(values) result(row)
      !> Extents or strides
      integer(c_int64_t), intent(in) :: values(:)
      integer(c_int64_t), pointer :: row(:)

      integer(c_int64_t), pointer :: place(:)

      call c_f_pointer(fpt_ftorch_row(), place, [FPT_MAX_RANK])
      place(:size(values)) = values
      row => place(:size(values))
   end function row_of
end module fpt_ftorch
