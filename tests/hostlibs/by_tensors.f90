! SPDX-License-Identifier: MIT
!> What algebra.py computes, as operations of tensors
module by_tensors
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   implicit none
   private

   public :: algebra_by_tensors

   integer, save :: stat
   character(:), allocatable, save :: errmsg
   !> Of one pair of matrices after the other; the elements of those that are not of algebra.py's first function
   type(torch_tensor), save :: all, squares

contains

   subroutine algebra_by_tensors(x, found, status, message)
      !> Real and imaginary parts
      real(real64), target :: x(:, :, :)
      !> All elements of all results
      type(torch_tensor), intent(inout) :: found
      !> Of the first operation that fails
      integer, intent(out) :: status
      !> Its text
      character(:), allocatable, intent(out) :: message
      type(torch_tensor) :: whole, parts(2), z, a, b
      type(torch_scope) :: scope
      character(10), parameter :: types(4) = [character(10) :: "float32", "float64", "complex64", "complex128"]
      integer, parameter :: sizes(2) = [3, 96]
      integer :: i, j, k

      stat = 0
      errmsg = ""
      call scope%begin()
      call whole%from_array(torch_in(x))
      call all%zeros([0], dtype="float64", stat=stat, errmsg=errmsg)
      call squares%zeros([0], dtype="float64", stat=stat, errmsg=errmsg)
      do i = 1, size(sizes)
         do k = 1, 2
            call run("Tensor.select", [whole%arg(), torch_in(0), torch_in(k - 1)], parts(k))
            do j = 0, 1
               call run("Tensor.narrow", [parts(k)%arg(), torch_in(j), torch_in(0), torch_in(sizes(i))], parts(k))
            end do
         end do
         call run("complex", [parts(1)%arg(), parts(2)%arg()], z)
         do j = 1, size(types)
            if (j <= 2) then
               call run("Tensor.to", [parts(1)%arg(), torch_in("dtype", trim(types(j)))], a)
               call run("Tensor.to", [parts(2)%arg(), torch_in("dtype", trim(types(j)))], b)
            else
               call run("Tensor.to", [z%arg(), torch_in("dtype", trim(types(j)))], a)
               call run("Tensor.transpose", [z%arg(), torch_in(0), torch_in(1)], b)
               call run("Tensor.mul", [b%arg(), torch_in((0d0, 0.5d0))], b)
               call run("Tensor.to", [b%arg(), torch_in("dtype", trim(types(j)))], b)
            end if
            call of_a_pair(a, b, sizes(i), trim(types(j)))
         end do
      end do
      if (stat == 0) found = torch_cat([all, squares], dim=1)
      if (stat == 0) call scope%keep(found)
      call scope%end()
      status = stat
      message = errmsg
   end subroutine algebra_by_tensors

   subroutine of_a_pair(a, b, n, dtype)
      !> Matrices
      type(torch_tensor), intent(inout) :: a, b
      !> Their extent
      integer, intent(in) :: n
      !> Their type
      character(*), intent(in) :: dtype
      type(torch_tensor) :: r, s, hermitian, first, second
      type(torch_results) :: results

      call run("Tensor.conj", [a%arg()], r)
      call run("Tensor.transpose", [r%arg(), torch_in(0), torch_in(1)], r)
      call run("matmul", [a%arg(), r%arg()], hermitian)
      call run("eye", [torch_in(n), torch_in("dtype", dtype)], s)
      call run("Tensor.mul", [s%arg(), torch_in(n)], s)
      call run("Tensor.add", [hermitian%arg(), s%arg()], hermitian)
      call run("Tensor.select", [a%arg(), torch_in(0), torch_in(0)], first)
      call run("Tensor.select", [b%arg(), torch_in(0), torch_in(0)], second)

      call run("matmul", [a%arg(), b%arg()], r)
      call add(r)
      call run("matmul", [a%arg(), second%arg()], r)
      call add(r)
      call run("Tensor.reshape", [a%arg(), torch_copy([3, n/3, n])], r)
      call run("Tensor.reshape", [b%arg(), torch_copy([3, n, n/3])], s)
      call run("bmm", [r%arg(), s%arg()], r)
      call add(r)
      call run("dot", [first%arg(), second%arg()], r)
      call add(r)
      call run("vdot", [first%arg(), second%arg()], r)
      call add(r)
      call run("linalg.solve", [a%arg(), b%arg()], r)
      call add(r)
      call run("linalg.inv", [a%arg()], r)
      call add(r)
      call of_several("linalg.svd", [a%arg()], 2, r)
      call add(r)
      call of_several("linalg.eigh", [hermitian%arg()], 1, r)
      call add(r)
      call run("linalg.cholesky", [hermitian%arg()], r)
      call add(r)
      call of_several("linalg.qr", [a%arg()], 2, r)
      call run("abs", [r%arg()], r)
      call add(r)
      call run("Tensor.narrow", [a%arg(), torch_in(0), torch_in(0), torch_in(min(n, 48))], r)
      call run("Tensor.narrow", [r%arg(), torch_in(1), torch_in(0), torch_in(min(n, 48))], r)
      call run("linalg.eigvals", [r%arg()], r)
      call run("abs", [r%arg()], r)
      call of_several("sort", [r%arg()], 1, r)
      call add(r)
      call of_several("linalg.slogdet", [a%arg()], 2, r)
      call add(r)
      call run("fft.fft2", [a%arg()], r)
      call add(r)
      if (stat == 0) call torch_call("linalg.lstsq", [a%arg(), b%arg(), torch_in("driver", "gels")], results, &
         stat=stat, errmsg=errmsg)
      if (stat == 0) call results%get(1, r, stat=stat, errmsg=errmsg)
      call elements(r)
      if (stat == 0) squares = torch_cat([squares, r], dim=1)
   end subroutine of_a_pair

   !> One operation, unless one before has failed
   subroutine run(name, arguments, result)
      !> See torch_call
      character(*), intent(in) :: name
      !> See torch_call
      type(torch_arg), target :: arguments(:)
      !> May be one of the arguments
      type(torch_tensor), intent(inout) :: result
      type(torch_tensor) :: made

      if (stat == 0) call torch_call(name, arguments, made, stat=stat, errmsg=errmsg)
      if (stat == 0) result = made
   end subroutine run

   !> One result of an operation that has several
   subroutine of_several(name, arguments, place, result)
      !> See torch_call
      character(*), intent(in) :: name
      !> See torch_call
      type(torch_arg), target :: arguments(:)
      !> Of the result
      integer, intent(in) :: place
      !> May be one of the arguments
      type(torch_tensor), intent(inout) :: result
      type(torch_results) :: results

      if (stat == 0) call torch_call(name, arguments, results, stat=stat, errmsg=errmsg)
      if (stat == 0) call results%get(place, result, stat=stat, errmsg=errmsg)
   end subroutine of_several

   subroutine add(result)
      !> Of an operation; becomes its elements
      type(torch_tensor), intent(inout) :: result

      call elements(result)
      if (stat == 0) all = torch_cat([all, result], dim=1)
   end subroutine add

   subroutine elements(tensor)
      !> Of any type; becomes a vector of real64
      type(torch_tensor), intent(inout) :: tensor

      if (stat /= 0) return
      if (index(tensor%dtype(), "complex") > 0) then
         call run("Tensor.resolve_conj", [tensor%arg()], tensor)
         call run("view_as_real", [tensor%arg()], tensor)
      end if
      call run("Tensor.to", [tensor%arg(), torch_in("dtype", "float64")], tensor)
      call run("Tensor.flatten", [tensor%arg()], tensor)
   end subroutine elements
end module by_tensors
