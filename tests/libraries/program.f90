! SPDX-License-Identifier: MIT
!> Products of matrices and vectors by each path, in a program that is linked with a library of its own.
!>
!>     libraries_NAME <path> <file>...    prints the numbers as words, or status and text of what was refused
program libraries
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use ftn_pytorch
   use played_ranks, only : ranks_begin
   implicit none

   integer :: i, stat
   character(200) :: path, file
   character(:), allocatable :: errmsg

   do i = 1, command_argument_count(), 2
      call get_command_argument(i, path)
      call get_command_argument(i + 1, file)
      stat = 0
      if (path == "tensors") then
         call by_tensors()
      else
         call by_file()
      end if
      if (stat /= 0) print "(a, 1x, i0, 1x, a)", trim(path), stat, errmsg
   end do

contains

   subroutine by_file()
      type(torch_pymodule) :: script
      type(torch_module) :: model
      real(real64) :: x(40, 40), y(40)
      integer :: call, j

      x = reshape([(real(mod(j, 7) - 3, real64)/4, j=1, size(x))], shape(x))
      select case (path)
      case ("node")
         j = ranks_begin(1)
         call script%load(trim(file), communicator=0, per="node", stat=stat, errmsg=errmsg)
      case ("script", "recorded")
         call script%load(trim(file), record=path == "recorded", stat=stat, errmsg=errmsg)
      case default
         call model%load(trim(file), backend=trim(path), stat=stat, errmsg=errmsg)
      end select
      if (stat /= 0) return
      do call = 1, merge(8, 1, path == "recorded")
         y = -1
         select case (path)
         case ("script", "recorded", "node")
            call script%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         case default
            call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
         end select
         if (stat /= 0) return
      end do
      if (path == "recorded") call script%save(trim(file) // ".ftr", stat=stat, errmsg=errmsg)
      call show(y)
   end subroutine by_file

   !> A product in each of four types
   subroutine by_tensors()
      type(torch_tensor) :: x, a
      type(torch_scope) :: scope
      real(real64), target :: values(40, 40), sums(40)
      integer :: j, k
      character(10), parameter :: types(4) = [character(10) :: "float32", "float64", "complex64", "complex128"]

      values = reshape([(real(mod(j, 7) - 3, real64)/4, j=1, size(values))], shape(values))
      call scope%begin()
      call x%from_array(torch_in(values))
      do k = 1, size(types)
         call torch_call("Tensor.to", [x%arg(), torch_in("dtype", trim(types(k)))], a, stat=stat, errmsg=errmsg)
         if (stat /= 0) return
         a = matmul(a, a)
         call torch_call("abs", [a%arg()], a, stat=stat, errmsg=errmsg)
         if (stat /= 0) return
         call torch_call("Tensor.double", [a%arg()], a, stat=stat, errmsg=errmsg)
         if (stat /= 0) return
         call torch_call("sum", [a%arg(), torch_in("dim", 0)], a, stat=stat, errmsg=errmsg)
         if (stat /= 0) return
         call a%copy_to(torch_out(sums), stat=stat, errmsg=errmsg)
         if (stat /= 0) return
         call show(sums)
      end do
      call scope%end()
   end subroutine by_tensors

   subroutine show(values)
      real(real64), intent(in) :: values(:)

      print "(a, *(1x, z16.16))", trim(path), transfer(values, [0_int64])
   end subroutine show

end program libraries
