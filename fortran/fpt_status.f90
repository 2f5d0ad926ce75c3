! SPDX-License-Identifier: MIT
!> The text of the last failure, and what happens when nobody asked for the status.
!>
!> Every public procedure ends alike: stat, when present, is set to zero or to a code of fpt_codes; errmsg, when
!> present, receives the reason of a failure and keeps its value on success; without stat a failure stops the program.
!> That tail is written out in each procedure (macro settle of fpt_kinds.fypp), because gfortran loses the length of a
!> deferred-length argument that is forwarded to another optional argument.
!>
!> No procedure of the library calls a function whose result is of deferred length: where one is called, gfortran keeps
!> the length in static memory, which all threads share.
module fpt_status
   use, intrinsic :: iso_c_binding, only : c_associated, c_char, c_f_pointer, c_int32_t, c_int64_t, c_null_char, c_ptr
   use fpt_c, only : fpt_error_text
   use fpt_codes, only : FTN_PYTORCH_ERR_ARGUMENT, FTN_PYTORCH_ERR_DTYPE, FTN_PYTORCH_ERR_INTERNAL, &
      FTN_PYTORCH_ERR_RANK, FTN_PYTORCH_ERR_SHAPE, FTN_PYTORCH_ERR_STRIDE, FTN_PYTORCH_OK
   implicit none
   private

   public :: FTN_PYTORCH_OK, get_last_error, give_up, text_at, length_at, ftn_pytorch_on_error

   ! Failures that only the Fortran side can see are negative on their way to get_last_error, which knows their texts;
   ! all others have theirs in the C library.
   !> Key of a result that is neither an integer nor a character
   integer(c_int32_t), parameter, public :: BAD_KEY = -FTN_PYTORCH_ERR_ARGUMENT
   !> Number that the variable of the caller cannot hold
   integer(c_int32_t), parameter, public :: BAD_RANGE = -FTN_PYTORCH_ERR_DTYPE
   !> Scalar in place of an array
   integer(c_int32_t), parameter, public :: BAD_SCALAR = -FTN_PYTORCH_ERR_RANK
   !> Strides that no pointer can have
   integer(c_int32_t), parameter, public :: BAD_STRIDE = -FTN_PYTORCH_ERR_STRIDE
   !> Array of tensors on the left of an assignment that is not there, or of another shape
   integer(c_int32_t), parameter, public :: BAD_ASSIGNMENT = -FTN_PYTORCH_ERR_SHAPE
   !> Pointer that the compiler's run-time library would not make
   integer(c_int32_t), parameter, public :: BAD_POINTER = -FTN_PYTORCH_ERR_INTERNAL

   abstract interface
      !> Receiver of failures that no stat asked for. The program stops when it returns
      subroutine error_handler(code, text)
         implicit none
         !> One of FTN_PYTORCH_ERR_...
         integer, intent(in) :: code
         !> What would be printed
         character(*), intent(in) :: text
      end subroutine error_handler
   end interface

   procedure(error_handler), pointer, save :: registered => null()

contains

   !> Register what is called before a failure without stat stops the program, for example to call MPI_Abort
   subroutine ftn_pytorch_on_error(handler)
      !> Called with code and text; absent: none any more. An internal procedure must outlive its registration
      procedure(error_handler), optional :: handler

      if (present(handler)) then
         registered => handler
      else
         registered => null()
      end if
   end subroutine ftn_pytorch_on_error

   !> Reason of a failure
   subroutine get_last_error(status, text)
      !> What the failed call returned
      integer(c_int32_t), intent(in) :: status
      !> Receives the reason
      character(:), allocatable, intent(inout) :: text

      type(c_ptr) :: address
      integer(c_int64_t) :: length

      select case (status)
      case (BAD_KEY)
         text = "a result is named by its index (an integer) or by its name (a character); the key is of another type"
      case (BAD_RANGE)
         text = "the result is an integer too large for the variable it was asked into: use integer(int64)"
      case (BAD_SCALAR)
         text = "a scalar is given in place of an array: pass torch_out(x), which refers to it, or torch_in(x), " &
            // "which has its value"
      case (BAD_STRIDE)
         text = "the elements of this array do not follow each other in Fortran order, and a pointer with such " &
            // "strides is not possible with this compiler: copy the array with copy_to, or return " &
            // "x.contiguous() from the script"
      case (BAD_ASSIGNMENT)
         text = "an array of torch_tensor is assigned to one of another shape, or to one that is not allocated: no " &
            // "defined assignment allocates"
      case (BAD_POINTER)
         text = "the Fortran run-time library refused to make a pointer; please report this"
      case default
         call fpt_error_text(address, length)
         text = text_at(address, length)
      end select
   end subroutine get_last_error

   !> End the program as the user arranged it: registered handler, then error stop with the reason
   subroutine give_up(status, reason)
      !> What the failed call returned
      integer(c_int32_t), intent(in) :: status
      !> Reason that neither the library nor get_last_error knows
      character(*), intent(in), optional :: reason

      character(:), allocatable :: text

      if (present(reason)) then
         text = reason
      else
         call get_last_error(status, text)
      end if
      if (associated(registered)) call registered(int(abs(status)), text)
      error stop text
   end subroutine give_up

   !> Copy of a text that the C library owns
   function text_at(address, length) result(text)
      !> First byte
      type(c_ptr), intent(in) :: address
      !> Length in bytes
      integer(c_int64_t), intent(in) :: length
      character(length) :: text

      character(kind=c_char), pointer :: bytes(:)
      integer(c_int64_t) :: i

      if (length == 0) return
      call c_f_pointer(address, bytes, [length])
      do i = 1, length
         text(i:i) = bytes(i)
      end do
   end function text_at

   !> Length in bytes of a null-terminated text
   function length_at(address) result(length)
      !> First byte, or null for no text
      type(c_ptr), intent(in) :: address
      integer(c_int64_t) :: length

      character(kind=c_char), pointer :: bytes(:)

      length = 0
      if (.not. c_associated(address)) return
      call c_f_pointer(address, bytes, [huge(length)])
      do while (bytes(length + 1) /= c_null_char)
         length = length + 1
      end do
   end function length_at
end module fpt_status
