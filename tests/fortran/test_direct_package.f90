! SPDX-License-Identifier: MIT
!> Packages of AOTInductor on the direct path, without Python.
program test_direct_package
   use, intrinsic :: iso_fortran_env, only : int32, real32, real64
   use check, only : expect, expect_status, expect_text, finish
   use ftn_pytorch
   implicit none

   type(torch_module) :: model, same
   type(torch_results) :: results
   real(real32) :: x(3, 5), weighted(3, 5), moved(3, 5), t(5, 3), u(5, 3), shift(3), wide(4, 5)
   real(real32), pointer :: p(:, :)
   real(real64) :: loss
   integer(int32) :: numbers(3, 5)
   character(:), allocatable :: errmsg
   integer :: i, j, stat

   x = reshape([(real(i, real32), i=1, 15)], [3, 5])
   shift = [100., 200., 300.]
   call model%load("package.pt2")
   call expect(model%backend() == "direct", "backend of a package")
   call model%forward([torch_in(x), torch_in("shift", shift)], [torch_out("moved", moved), torch_out("weighted", weighted)])
   call expect(all([((weighted(i, j) == i*x(i, j), i=1, 3), j=1, 5)]), "a result by name")
   call expect(all([((moved(i, j) == x(i, j) + shift(i), i=1, 3), j=1, 5)]), "the other one")
   call model%forward([torch_in(x(:, 2:4:2)), torch_in("shift", shift)], results)
   call results%to_array("moved", p)
   call expect(all(shape(p) == [3, 2]) .and. all(p(:, 2) == x(:, 4) + shift), "another batch, from a strided section")
   call same%load("package.pt2", layout="same", backend="direct")
   t = transpose(x)
   call same%forward([torch_in(t), torch_in("shift", shift)], [torch_out("moved", u), torch_out("weighted", t)])
   call expect(all(u == transpose(moved)) .and. all(t == transpose(weighted)), "the same axis order")

   numbers = 1
   wide = 1
   call model%forward([torch_in(numbers), torch_in("shift", shift)], results, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a package checks types", errmsg)
   call model%forward([torch_in(wide), torch_in("shift", shift)], results, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a package checks shapes", errmsg)
   call model%forward([torch_in(x)], results, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "an input is missing", errmsg)
   call expect_text(errmsg, "takes 2 inputs", "an input is missing: reason")
   call model%forward([torch_in(x), torch_in("shaft", shift)], results, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "an input of another name", errmsg)
   call expect_text(errmsg, "named ones called shift", "an input of another name: reason")
   call model%forward([torch_in(x), torch_in("shift", 1.0)], results, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_SIGNATURE, "a scalar", errmsg)
   call model%create_optimizer_sgd(0.1, stat=stat, errmsg=errmsg)
   call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package cannot be trained", errmsg)
   call model%train([torch_in(x)], [torch_in(x)], loss, stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package is not trained")
   call model%save("package_saved.pt2", stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_HOOK, "a package cannot be saved")
   call model%reload()
   call model%forward([torch_in(x), torch_in("shift", shift)], [torch_out("moved", moved), torch_out("weighted", weighted)])
   call expect(all(moved(:, 5) == x(:, 5) + shift), "a package can be read again")

   call expect_load("processor", FTN_PYTORCH_ERR_VERSION, "AVX4096")
   call expect_load("library", FTN_PYTORCH_ERR_FORMAT, "compile it again")
   call expect_load("device", FTN_PYTORCH_ERR_DEVICE, "package_device.pt2")
   call finish()

contains

   subroutine expect_load(kind, status, part)
      character(*), intent(in) :: kind, part
      integer, intent(in) :: status

      type(torch_module) :: other

      call other%load("package_" // kind // ".pt2", backend="direct", stat=stat, errmsg=errmsg)
      call expect_status(stat, status, kind, errmsg)
      if (stat /= FTN_PYTORCH_OK) call expect_text(errmsg, part, kind // ": reason")
   end subroutine expect_load
end program test_direct_package
