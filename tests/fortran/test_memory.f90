! SPDX-License-Identifier: MIT
!> Memory at an address, which no Fortran array describes, and pages that stay where they are.
program test_memory
   use, intrinsic :: iso_c_binding, only : c_bool, c_loc, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : int64, real32, real64
   use check, only : address_of, expect, expect_status, finish, script
   use ftn_pytorch
   implicit none

   integer(int64), target, save :: memory(12)
   type(torch_pymodule) :: model

   call model%load(script("look.py"))
   call every_type()
   call values_arrive()
   call names_are_kept()
   call nothing_is_described()
   call refused_by_the_call()
   call pinned()
   call finish()

contains

   subroutine every_type()
      character(10), parameter :: types(9) = [character(10) :: "bool", "int8", "int16", "int32", "int64", "float32", &
         "float64", "complex64", "complex128"]
      integer, parameter :: bytes(9) = [1, 1, 2, 4, 8, 4, 8, 8, 16]
      type(c_ptr) :: place
      integer :: i

      ! complex128 at a multiple of its size, as torch wants it
      place = c_loc(memory(1))
      if (mod(address_of(place), 16_int64) /= 0) place = c_loc(memory(2))
      memory = 0
      do i = 1, size(types)
         call seen(torch_in(place, [2, 3], types(i)), place, trim(types(i)), [2, 3], [1, 2]*bytes(i))
         call seen(torch_out(place, [2_int64, 1_int64, 3_int64], trim(types(i))), place, trim(types(i)), [2, 1, 3], &
            [1, 2, 2]*bytes(i))
      end do
   end subroutine every_type

   subroutine values_arrive()
      real(real32), target :: u(3, 2), v(3, 2)
      logical(c_bool), target :: flags(4)
      real(real64), target :: number
      type(torch_results) :: results
      character(:), allocatable :: kind
      integer :: i

      u = reshape([1, 2, 3, 4, 5, 6], [3, 2])
      do i = 1, 3 ! the first two calls are checked, those that follow are not
         v = 0
         call model%forward([torch_in(c_loc(u), shape(u), "float32")], [torch_out(c_loc(v), shape(v), "float32")])
         call expect(all(v == 2*u), "values go in and come out")
         u = u + 1
      end do
      v = u
      call model%call("add_one", [torch_out(c_loc(u), shape(u, kind=int64), "float32")])
      call expect(all(u == v + 1), "a function changes memory in place")
      flags = [.true., .false., .true., .true.]
      call torch_call("count_nonzero", [torch_in(c_loc(flags), [4], "bool")], &
         [torch_out(c_loc(memory), [integer ::], "int64")])
      call expect(memory(1) == 3, "logicals go in, a scalar comes out")
      number = 2.5_real64
      call model%call("kind", [torch_in(c_loc(number), [integer ::], "float64")], results)
      call results%scalar(1, kind)
      call expect(kind == "float", "memory without axes is a number")
      call results%free()
   end subroutine values_arrive

   subroutine names_are_kept()
      real(real64), target :: u(4), v(4)
      type(torch_results) :: results
      real(real64) :: total

      u = 1
      v = 2
      call model%call("total", [torch_in("x", c_loc(v), [4], "float64")], results)
      call results%scalar(1, total)
      call expect(total == 8, "an input with a name")
      call model%call("fill", [torch_out("out", c_loc(u), [4_int64], "float64")])
      call expect(all(u == 7), "an output with a name")
   end subroutine names_are_kept

   subroutine nothing_is_described()
      type(torch_results) :: results
      real(real64) :: total

      call model%call("total", [torch_in(c_null_ptr, [3, 0], "float64")], results)
      call results%scalar(1, total)
      call expect(total == 0, "no elements need no memory")
      call model%call("total", [torch_in(c_loc(memory), [0], "int64")], results)
      call results%scalar(1, total)
      call expect(total == 0, "no elements at an address")
      call model%call("empty", outputs=[torch_out(c_null_ptr, [0], "float64")])
   end subroutine nothing_is_described

   subroutine refused_by_the_call()
      call refused(torch_in(c_null_ptr, [3], "float32"), &
         FTN_PYTORCH_ERR_UNALLOCATED, "input 1 of add_one has no memory")
      call refused(torch_out(c_null_ptr, [integer ::], "float32"), &
         FTN_PYTORCH_ERR_UNALLOCATED, "input 1 of add_one has no memory")
      call refused(torch_in("x", c_null_ptr, [3], "float32"), &
         FTN_PYTORCH_ERR_UNALLOCATED, 'input 1 ("x") of add_one has no memory')
      call refused(torch_in(c_loc(memory), [3], "flaot32"), FTN_PYTORCH_ERR_ARGUMENT, &
         "the element type of input 1 of add_one is 'flaot32'; valid are bool, int8, int16, int32, int64, " // &
         "float32, float64, complex64, complex128")
      call refused(torch_in("x", c_loc(memory), [3], ""), FTN_PYTORCH_ERR_ARGUMENT, &
         'the element type of input 1 ("x") of add_one is ''''; valid are bool')
      ! what only results have, and what is no name of a type
      call refused(torch_in(c_loc(memory), [3], "uint8"), FTN_PYTORCH_ERR_ARGUMENT, "is 'uint8'; valid are")
      call refused(torch_in(c_loc(memory), [3], "str"), FTN_PYTORCH_ERR_ARGUMENT, "is 'str'; valid are")
      call refused(torch_in(c_loc(memory), [3], repeat("x", 300)), FTN_PYTORCH_ERR_ARGUMENT, "x'; valid are")
      call refused(torch_in(c_loc(memory), [3, -1], "int8"), FTN_PYTORCH_ERR_ARGUMENT, "an extent is negative")
      call refused(torch_out(c_loc(memory), [1, 1, 1, 1, 1, 1, 1, 1], "int8"), FTN_PYTORCH_ERR_RANK, "has rank 8")
      call refused(torch_in(c_loc(memory), [2_int64**62, 2_int64**62], "int8"), FTN_PYTORCH_ERR_ARGUMENT, &
         "more than 2^63 bytes")
      call refused(torch_in("", c_loc(memory), [3], "int8"), FTN_PYTORCH_ERR_ARGUMENT, "its name is empty")
   end subroutine refused_by_the_call

   subroutine pinned()
      real(real64), target :: x(3, 4)
      logical(c_bool), target :: has_gpu
      character(:), allocatable :: errmsg
      integer :: stat

      call torch_call("cuda.is_available", [torch_arg ::], [torch_out(has_gpu)])
      if (has_gpu) then
         call ftn_pytorch_init(device="cuda")
         call torch_pin(torch_in(x))
         call torch_pin(torch_out(x), stat, errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an array is pinned once", errmsg)
         call torch_unpin(torch_in(c_loc(x), [12], "float64"))
         call torch_unpin(torch_in(x), stat, errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "what is not pinned is not released", errmsg)
      else
         call torch_pin(torch_in(x), stat, errmsg)
         call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "no driver, or no GPU", errmsg, "the driver of CUDA")
         call torch_unpin(torch_in(x), stat)
         call expect_status(stat, FTN_PYTORCH_ERR_DEVICE, "nor is anything released")
      end if
      call torch_pin(torch_in(x(:2, :)), stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_STRIDE, "a section is not pinned", errmsg)
      call torch_pin(torch_in(c_null_ptr, [3], "int8"), stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_UNALLOCATED, "nor memory that is not there", errmsg)
      call torch_pin(torch_in("a text"), stat, errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "nor a text", errmsg)
      call torch_pin(torch_in(x(:, :0)))
      call torch_unpin(torch_in(x(:, :0)))
   end subroutine pinned

   !> The script sees these elements at this place
   subroutine seen(x, place, dtype, extents, strides)
      type(torch_arg), target :: x
      type(c_ptr), intent(in) :: place
      character(*), intent(in) :: dtype
      integer, intent(in) :: extents(:), strides(:)

      type(torch_results) :: results
      integer(int64) :: found, address
      integer(int64), pointer :: axes(:)
      character(:), allocatable :: text

      call model%call("look", [x], results)
      call results%scalar("address", address)
      call expect(address == address_of(place), dtype // ": address")
      call results%scalar("dtype", text)
      call expect(text == dtype, dtype // ": element type")
      call results%scalar("rank", found)
      call expect(found == size(extents), dtype // ": rank")
      call results%to_array("shape", axes)
      call expect(all(axes == extents), dtype // ": extents")
      call results%to_array("strides", axes)
      call expect(all(axes == strides .or. extents == 1), dtype // ": strides")
   end subroutine seen

   !> The call says no, and why
   subroutine refused(x, code, reason)
      type(torch_arg), target :: x
      integer, intent(in) :: code
      character(*), intent(in) :: reason

      character(:), allocatable :: errmsg
      integer :: stat

      call model%call("add_one", [x], stat=stat, errmsg=errmsg)
      call expect_status(stat, code, reason, errmsg, reason)
   end subroutine refused
end program test_memory
