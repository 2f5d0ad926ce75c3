! SPDX-License-Identifier: MIT
!> The same problems through libtorch as one would call it by hand: see libtorch.cpp.
module bench_peer
   use, intrinsic :: iso_c_binding, only : c_associated, c_char, c_double, c_int, c_int64_t, &
      c_null_char, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : real64
   use bench_field, only : field
   use bench_problem, only : problem
   implicit none
   private

   public :: peer_model, peer_load, peer_call, peer_free

   character(*), parameter, public :: peer_paths = "libtorch"

   integer(c_int), parameter :: is_input = 0, is_output = 1, is_target = 2

   type :: peer_model
      type(c_ptr) :: handle = c_null_ptr
   end type peer_model

   interface
      function c_load(file, optimizer, rate) result(handle) bind(c, name="bench_libtorch_load")
         import :: c_char, c_double, c_ptr
         implicit none
         character(kind=c_char), intent(in) :: file(*), optimizer(*)
         real(c_double), value :: rate
         type(c_ptr) :: handle
      end function c_load

      subroutine c_wrap(handle, role, data, is_double, rank, extents, strides) bind(c, name="bench_libtorch_wrap")
         import :: c_int, c_int64_t, c_ptr
         implicit none
         type(c_ptr), value :: handle, data
         integer(c_int), value :: role, is_double, rank
         integer(c_int64_t), intent(in) :: extents(*), strides(*)
      end subroutine c_wrap

      function c_call(handle) result(loss) bind(c, name="bench_libtorch_call")
         import :: c_double, c_ptr
         implicit none
         type(c_ptr), value :: handle
         real(c_double) :: loss
      end function c_call

      subroutine c_free(handle) bind(c, name="bench_libtorch_free")
         import :: c_ptr
         implicit none
         type(c_ptr), value :: handle
      end subroutine c_free
   end interface

contains

   subroutine peer_load(self, path, problem_, output, layout, script, errmsg)
      type(peer_model), intent(inout) :: self
      type(problem), intent(in) :: problem_
      type(field), intent(in) :: output
      character(*), intent(in) :: path, layout, script
      character(:), allocatable, intent(out) :: errmsg

      integer :: i

      errmsg = ""
      self%handle = c_load(problem_%model // ".pt" // c_null_char, &
         trim(merge(problem_%optimizer, "        ", problem_%trains)) // c_null_char, problem_%rate)
      if (.not. c_associated(self%handle)) then
         errmsg = "libtorch cannot load " // problem_%model // ".pt"
         return
      end if
      do i = 1, problem_%input_count
         call wrap(self%handle, is_input, problem_%inputs(i), layout)
      end do
      if (problem_%trains) call wrap(self%handle, is_target, problem_%target, layout)
      if (problem_%has_output) call wrap(self%handle, is_output, output, layout)
   end subroutine peer_load

   subroutine wrap(handle, role, array, layout)
      type(c_ptr), intent(in) :: handle
      integer(c_int), intent(in) :: role
      type(field), intent(in) :: array
      character(*), intent(in) :: layout

      integer(c_int64_t) :: extents(array%rank), strides(array%rank)
      integer :: i

      extents = array%extents(:array%rank)
      strides = [(product(extents(:i - 1)), i=1, array%rank)]
      if (layout == "reversed") then
         extents = extents(array%rank:1:-1)
         strides = strides(array%rank:1:-1)
      end if
      call c_wrap(handle, role, array%address(), merge(1_c_int, 0_c_int, array%dtype == "float64"), &
         int(array%rank, c_int), extents, strides)
   end subroutine wrap

   subroutine peer_call(self, loss)
      type(peer_model), intent(inout) :: self
      real(real64), intent(inout) :: loss

      loss = c_call(self%handle)
   end subroutine peer_call

   subroutine peer_free(self)
      type(peer_model), intent(inout) :: self

      call c_free(self%handle)
      self%handle = c_null_ptr
   end subroutine peer_free
end module bench_peer
