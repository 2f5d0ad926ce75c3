! SPDX-License-Identifier: MIT
!> What a program tells all scripts of its process: before they are loaded, between calls, again, and wrongly.
program test_host_values
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : real64
   use check, only : expect, expect_status, finish, script
   use ftn_pytorch
   implicit none
   real(real64) :: lon(3, 2)
   logical(c_bool) :: mask(4)
   real(real64), allocatable :: nowhere(:)

   call is_told_before_the_load()
   call is_told_again()
   call arrives_in_its_kinds()
   call refuses()
   call finish()

contains

   subroutine is_told_before_the_load()
      type(torch_pymodule) :: model
      integer :: stat

      call model%load(script("asks_host.py"))
      call expect(text_of(model, "time_at_load") == "none", "nothing told")
      call ftn_pytorch_set_host([torch_in("time", "2030-01-01T00:00:00")], stat=stat)
      call expect_status(stat, FTN_PYTORCH_OK, "told")
      call expect(text_of(model, "time_at_load") == "none", "what a script has kept stays")
      call model%load(script("asks_host.py"))
      call expect(text_of(model, "time_at_load") == "2030-01-01T00:00:00", "told before the load")
   end subroutine is_told_before_the_load

   subroutine is_told_again()
      type(torch_pymodule) :: first, second

      call first%load(script("asks_host.py"))
      call second%load(script("asks_host.py"))
      call ftn_pytorch_set_host([torch_in("time", "2030-01-02T00:00:00")])
      call expect(text_of(first, "time_now") == "2030-01-02T00:00:00", "told again")
      call expect(text_of(second, "time_now") == "2030-01-02T00:00:00", "told to all scripts")
      call expect(text_of(first, "time_at_load") == "2030-01-01T00:00:00", "told again: what was kept stays")
   end subroutine is_told_again

   subroutine arrives_in_its_kinds()
      type(torch_pymodule) :: model
      type(torch_results) :: results
      real(real64) :: sum

      lon = 1
      mask = .true.
      call ftn_pytorch_set_host([torch_in("step", 7), torch_in("dt", 0.5_real64), torch_in("is_wet", .true.), &
         torch_in("lon", lon), torch_copy("mask", mask(1:3:2))])
      lon = 2                                         ! it was copied
      call model%load(script("asks_host.py"))
      call expect(text_of(model, "kinds") == "int float bool str ndarray ndarray 2 3 float64 bool", &
         "kinds: " // text_of(model, "kinds"))
      call model%call("total", results)
      call results%scalar(1, sum)
      call expect(sum == 6, "arrays are copied")
      call ftn_pytorch_set_host([torch_arg ::])
      call expect(text_of(model, "names") == "dt is_wet lon mask step time", "earlier values stay")
   end subroutine arrives_in_its_kinds

   subroutine refuses()
      type(torch_pymodule) :: model
      character(:), allocatable :: errmsg
      integer :: stat

      call model%load(script("asks_host.py"))
      call ftn_pytorch_set_host([torch_in("time", "later"), torch_in(3)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no name", errmsg, "host value 2 needs a name")
      call expect(text_of(model, "time_now") == "2030-01-02T00:00:00", "no name: nothing has changed")
      call ftn_pytorch_set_host([torch_in("there", nowhere)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_UNALLOCATED, "no memory", errmsg, "there")
   end subroutine refuses

   function text_of(model, name) result(text)
      type(torch_pymodule), intent(in) :: model
      character(*), intent(in) :: name
      character(:), allocatable :: text
      type(torch_results) :: results

      call model%call(name, results)
      call results%scalar(1, text)
   end function text_of
end program test_host_values
