! SPDX-License-Identifier: MIT
!> A LightningModule learns the sub-grid tendency of a running model, and is tested on what comes afterwards
!>
!>     lightning_online closure.py FOLDER    learn while the model runs; samples and the log go into FOLDER
!>     lightning_online FILE.pt              test a saved network on the same later data
program lightning_online
   use ftn_pytorch
   use lorenz96, only: dp, full_model, gather_stencils, stencil
   implicit none
   integer, parameter :: nslow = 8, nfast = 32, per_sample = 50, steps = 2000, tests = 1000
   !> When everybody has learnt, and the test begins, in samples
   integer, parameter :: test_from = 2500
   real(dp), parameter :: dt = 1e-3_dp
   type(full_model) :: model
   type(torch_pymodule) :: closure
   type(torch_module) :: network
   integer :: samples = 0
   character(:), allocatable :: file

   file = argument(1)
   call model%start(nslow, nfast, forcing=20.0_dp, spin_up=10.0_dp, dt=dt)
   if (index(file, ".py") > 0) then
      call learn()
   else
      call test_saved()
   end if

contains

   subroutine learn()
      real(dp) :: columns(stencil, nslow), tendency(nslow), loss
      logical :: is_completed

      call closure%load(file, dtype="float32", &
         config=[torch_copy("steps", steps), torch_copy("folder", argument(2))])
      is_completed = .false.
      do while (.not. is_completed)
         call sample(columns, tendency)
         is_completed = closure%train([torch_in(columns)], [torch_in(tendency)], loss)
         if (mod(samples, 500) == 0) print "(a, i5, a, f6.3)", "sample ", samples, "   loss ", loss
      end do
      call closure%call("export_samples", [torch_copy(argument(2)//"/samples.npz")])
      call test("learnt online")
   end subroutine learn

   subroutine test_saved()
      call network%load(file, dtype="float32")
      call test(file(index(file, "/", back=.true.) + 1:))
   end subroutine test_saved

   !> Run the model on to the next sample
   subroutine sample(columns, tendency)
      real(dp), intent(out) :: columns(:, :), tendency(:)

      call model%advance(per_sample, dt)
      call gather_stencils(reshape(model%x, [nslow, 1]), columns)
      tendency = model%subgrid()
      samples = samples + 1
   end subroutine sample

   !> Print the share of the variance of the tendency that is explained, on samples from here on
   subroutine test(what)
      character(*), intent(in) :: what
      real(dp) :: columns(stencil, nslow), truth(nslow, tests), guess(nslow, tests), r2
      integer :: i

      if (samples > test_from) error stop "learning took longer than expected"
      call model%advance((test_from - samples)*per_sample, dt)
      do i = 1, tests
         call sample(columns, truth(:, i))
         if (index(file, ".py") > 0) then
            call closure%forward([torch_in(columns)], [torch_out(guess(:, i))])
         else
            call network%forward([torch_in(columns)], [torch_out(guess(:, i))])
         end if
      end do
      r2 = 1 - sum((guess - truth)**2)/sum((truth - sum(truth)/size(truth))**2)
      print "(a, f5.2)", "R2 on later data, "//what//": ", r2
      if (r2 < 0.85_dp) error stop "the network has not learnt"
   end subroutine test

   function argument(number) result(text)
      integer, intent(in) :: number
      character(:), allocatable :: text
      integer :: length

      call get_command_argument(number, length=length)
      allocate (character(length) :: text)
      call get_command_argument(number, text)
      if (length == 0) error stop "usage: lightning_online closure.py FOLDER | lightning_online FILE.pt"
   end function argument

end program lightning_online
