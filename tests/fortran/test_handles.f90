! SPDX-License-Identifier: MIT
!> Objects are aliases when they are copied, die once, and say so when they are used afterwards.
module handle_factory
   use ftn_pytorch
   implicit none
   private

   public :: bundle, make_bundle

   !> A derived type of the user, returned by value and assigned
   type :: bundle
      type(torch_tensor) :: tensor
      type(torch_results) :: results
      integer :: id = 0
   end type bundle

contains

   subroutine make_bundle(made, x)
      type(bundle), intent(out) :: made
      real, target, intent(inout) :: x(:)

      call made%tensor%from_array(x)
      made%id = 7
   end subroutine make_bundle
end module handle_factory

program test_handles
   use, intrinsic :: iso_c_binding, only : c_associated
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use handle_factory
   implicit none

   real, target :: x(3)

   x = 1
   call used_before_it_was_given_anything()
   call freed_twice()
   call copied_and_freed()
   call finalized_with_a_copy_alive()
   call finalized_in_arrays_and_loops()
   call in_derived_types()
   call freed_module()
   call freed_results()
   call finish()

contains

   subroutine used_before_it_was_given_anything()
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      type(torch_pymodule) :: model
      type(torch_module) :: saved
      character(:), allocatable :: errmsg
      real, pointer :: p(:)
      integer :: stat

      call expect(.not. tensor%is_set(), "a new tensor has no contents")
      call expect(.not. c_associated(tensor%get_handle()), "a new tensor has no address")
      call tensor%to_array(p, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "tensor without contents", errmsg, "from_array")
      call list%add_array(x, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "list before create", errmsg, "create")
      call expect(results%count(stat=stat) == 0, "results of nothing: count")
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "results of nothing")
      call model%forward([torch_in(x)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "script before load", errmsg, "load")
      call expect_text(errmsg, "ftn_pytorch_forward: ", "script before load: which call")
      call saved%forward([torch_in(x)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "model before load")
   end subroutine used_before_it_was_given_anything

   subroutine freed_twice()
      type(torch_tensor) :: tensor
      type(torch_tensor_wrap) :: list
      type(torch_results) :: results
      type(torch_pymodule) :: model
      integer :: stat

      call tensor%free()
      call list%free()
      call results%free()
      call model%free()
      call tensor%from_array(x)
      call list%create()
      call tensor%free()
      call tensor%free()
      call list%free()
      call list%free()
      call expect(.not. tensor%is_set(), "a freed tensor has no contents")
      call tensor%from_array(x, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a freed tensor can be used again")
   end subroutine freed_twice

   subroutine copied_and_freed()
      type(torch_tensor) :: one, other
      type(torch_tensor_wrap) :: list, alias
      real, pointer :: p(:)
      integer :: stat

      call one%from_array(x)
      other = one
      call one%free()
      call other%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "another name of a tensor lives on")
      call expect(size(p) == size(x), "another name of a tensor shows its memory")
      call one%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "a freed tensor has no contents")
      call other%from_array(x, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "another name can be given new contents")
      call one%from_array(x)
      call other%free()
      call expect(one%is_set(), "a stale handle frees nothing that came later")

      call list%create()
      alias = list
      call alias%free()
      call list%add_array(x, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "a list dies with its alias")
   end subroutine copied_and_freed

   subroutine finalized_with_a_copy_alive()
      type(torch_tensor) :: outer
      real, pointer :: p(:)
      integer :: stat

      block
         type(torch_tensor) :: inner

         call inner%from_array(x)
         outer = inner
         call expect(outer%is_set(), "a copy of a local tensor lives inside the block")
      end block
      call outer%to_array(p, stat=stat)
      call expect(stat == FTN_PYTORCH_ERR_FREED .or. stat == FTN_PYTORCH_OK, "a copy that left its block does no harm")
   end subroutine finalized_with_a_copy_alive

   subroutine finalized_in_arrays_and_loops()
      type(torch_tensor), allocatable :: tensors(:, :)
      integer :: i, j, round

      do round = 1, 3
         allocate (tensors(2, 3))
         do j = 1, 3
            do i = 1, 2
               call tensors(i, j)%from_array(x)
            end do
         end do
         deallocate (tensors)
      end do
      call expect(.not. allocated(tensors), "arrays of tensors are finalized")
   end subroutine finalized_in_arrays_and_loops

   subroutine in_derived_types()
      type(bundle) :: one, other
      real, pointer :: p(:)
      integer :: stat

      call make_bundle(one, x)
      other = one
      call expect(other%id == 7 .and. other%tensor%is_set(), "components are copied as aliases")
      call other%tensor%to_array(p)
      call expect(associated(p, x), "a copied component means the same memory")
      call make_bundle(one, x)
      call one%tensor%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "intent(out) finalizes and starts anew")
   end subroutine in_derived_types

   subroutine freed_module()
      type(torch_pymodule) :: model, alias
      character(:), allocatable :: errmsg
      integer :: stat
      real :: y(3)

      call model%load(script("look.py"))
      alias = model
      call alias%forward([torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a copy of a module can be called")
      call model%free()
      call alias%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FREED, "a freed module says so")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "the variable that was freed is empty")
      call model%load(script("look.py"), stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a freed module can be loaded again")
      call model%load(script("look.py"), stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a loaded module can be loaded again")
   end subroutine freed_module

   subroutine freed_results()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      type(torch_tensor) :: tensor
      real, pointer :: p(:)
      integer :: stat

      call model%load(script("look.py"))
      call model%forward([torch_in(x)], results)
      call results%get(1, tensor)
      call results%free()
      call tensor%to_array(p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "a tensor outlives the results it came from")
      call expect(all(p == 2*x), "a tensor keeps its values when results are freed")
      call results%to_array(1, p, stat=stat)
      call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "results that were freed are empty")
   end subroutine freed_results
end program test_handles
