! SPDX-License-Identifier: MIT
!> A script trains, a saved model of the same network predicts with its weights, on both paths.
program test_publish
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   implicit none

   type(torch_pymodule) :: trained
   type(torch_module) :: none
   real(real64) :: x(3, 32), target(2, 32)
   integer :: stat
   character(:), allocatable :: errmsg

   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(x)
   target = x(:2, :)**2
   call trained%load(script("publishing.py"))
   call publishes_to("direct")
   call publishes_to("python")
   call trained%publish(none, name="net", stat=stat)
   call expect_status(stat, FTN_PYTORCH_ERR_NOT_LOADED, "to a module that is not loaded")
   call finish()

contains

   subroutine publishes_to(backend)
      character(*), intent(in) :: backend

      type(torch_module) :: predicting, smaller, package, tied, single
      real(real64) :: wanted(2, 32), found(2, 32), before(2, 32), wanted_tied(3, 32), found_tied(3, 32)
      real(real64) :: loss
      real(real32) :: x_single(3, 32), before_single(2, 32), found_single(2, 32)
      logical :: completed
      integer :: step, call

      call trained%call("write", [torch_in("name", "net"), torch_in("file", backend//"_publish.pt")])
      call trained%call("write", [torch_in("name", "other"), torch_in("file", backend//"_smaller.pt")])
      call predicting%load(backend//"_publish.pt", backend=backend)
      call smaller%load(backend//"_smaller.pt", backend=backend)
      call predicting%forward([torch_in(x)], [torch_out(before)])

      do step = 1, 5
         completed = trained%train([torch_in(x)], [torch_in(target)], loss)
         call trained%forward([torch_in(x)], [torch_out(wanted)])
         call predicting%forward([torch_in(x)], [torch_out(found)])
         call expect(any(abs(found - wanted) > 1e-6_real64), backend//": training alone changes nothing")
         call trained%publish(predicting, name="net")
         do call = 1, merge(200, 3, step == 5)  ! so many that the direct path optimises the model again
            call predicting%forward([torch_in(x)], [torch_out(found)])
            call expect(all(abs(found - wanted) < 1e-12_real64), backend//": weights and statistics are published")
         end do
      end do
      call expect(any(abs(found - before) > 1e-3_real64), backend//": the network has learnt")

      call trained%call("train_beside", [torch_in(x), torch_in(target)])
      call trained%publish(predicting, name="background.published")
      call trained%call("published", [torch_in(x)], [torch_out(wanted)])
      call predicting%forward([torch_in(x)], [torch_out(found)])
      call expect(all(abs(found - wanted) < 1e-12_real64), backend//": what a Background has published")

      call trained%publish(smaller, name="net", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, backend//": to another network", errmsg, "differ in")
      call trained%publish(predicting, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, backend//": one of two networks", errmsg, "net, other")
      call trained%publish(predicting, name="nets", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, backend//": an unknown name", errmsg, "no network 'nets'")
      call predicting%forward([torch_in(x)], [torch_out(found)])
      call expect(all(abs(found - wanted) < 1e-12_real64), backend//": failures change nothing")

      call trained%call("write_single", [torch_in("file", backend//"_single.pt")])
      call single%load(backend//"_single.pt", backend=backend)
      x_single = real(x, real32)
      call single%forward([torch_in(x_single)], [torch_out(before_single)])
      call trained%publish(single, name="net", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_DTYPE, backend//": to a model of fewer digits", errmsg)
      call expect_text(errmsg, "is float64, and float32 in", backend//": the types are named")
      call single%restore(backend//"_publish.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FORMAT, backend//": a file of more digits", errmsg)
      call single%forward([torch_in(x_single)], [torch_out(found_single)])
      call expect(all(found_single == before_single), backend//": and nothing is changed")
      call trained%publish(single, name="single")

      call trained%call("write", [torch_in("name", "tied.0"), torch_in("file", backend//"_tied.pt")])
      call tied%load(backend//"_tied.pt", backend=backend)
      call trained%call("changed_tied", [torch_in(x)], [torch_out(wanted_tied)])
      call trained%publish(tied, name="tied.0")
      call tied%forward([torch_in(x)], [torch_out(found_tied)])
      call expect(all(abs(found_tied - wanted_tied) < 1e-12_real64), backend//": a network in a list, tied weights")

      call package%load(script("counter.py"))
      call trained%publish(package, name="net", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_HOOK, backend//": to a script", errmsg, "takes no weights")
   end subroutine publishes_to
end program test_publish
