! SPDX-License-Identifier: MIT
!> A CNN is trained inside a shallow-water model that is cut into sub-domains, as if there were one.
!>
!>    cnn_over_domains closure.py ["grid=2,2 steps=300 cells=24,48 plot='plot.py' folder='out'"]
program cnn_over_domains
   use, intrinsic :: iso_fortran_env, only : real64
   use mpi_f08
   use coarse_grid, only : coarsen
   use ftn_pytorch
   use process_grid, only : subdomain
   use shallow_water, only : dx, water
   implicit none

   integer, parameter :: wp = real64
   integer, parameter :: spin_up = 150   ! steps of the model, of new eddies
   integer, parameter :: between = 5     ! and before each step of training
   integer, parameter :: anew = 10       ! steps of training with the same eddies
   integer, parameter :: factor = 4
   real(wp), parameter :: exact = 1e-12_wp

   type(torch_pymodule) :: closure
   type(subdomain) :: domain
   type(water) :: fine
   character(256) :: script, plot, folder
   real(wp), allocatable :: seen(:, :, :), missed(:, :), history(:, :)
   real(wp) :: losses(2)
   integer, allocatable :: at(:)
   integer :: grid(2) = 0, cells(2) = [24, 48], steps = 300, step, i

   call MPI_Init()
   call read_options()
   call domain%cut(grid, cells, factor)
   call ftn_pytorch_set_threads(1)

   call new_eddies(0)
   call closure%load(trim(script), communicator=domain%comm, config=[torch_in("nx", domain%nx), &
      torch_in("ny", domain%ny), torch_in("px", domain%px), torch_in("py", domain%py), &
      torch_copy("scales", scales())])

   allocate (history(2, 0), at(0))
   do step = 1, steps
      if (modulo(step, anew) == 0) call new_eddies(step/anew)
      do i = 1, between
         call fine%step(domain)
      end do
      call coarsen(fine, domain, seen, missed)
      call closure%call("train", [torch_in(seen), torch_in(missed)], [torch_out(losses)])
      if (modulo(step, anew) /= 0) cycle
      history = reshape([history, losses], [2, size(at) + 1])
      at = [at, step]
      if (step < steps .and. modulo(step/anew, max(steps/anew/5, 1)) == 0) call tell_errors(step)
   end do
   call new_eddies(steps/anew + 1)
   call closure%call("errors", [torch_in(seen), torch_in(missed)], [torch_out(losses)])
   call tell_errors(steps)
   call compare()
   if (plot /= "") call draw()
   call closure%free()
   call MPI_Finalize()

contains

   !> The script, and what is other than here, as a namelist
   subroutine read_options()
      character(1024) :: words
      character(256) :: reason
      integer :: stat
      namelist /options/ grid, cells, steps, plot, folder

      plot = ""
      folder = "."
      call get_command_argument(1, script)
      if (script == "") error stop "cnn_over_domains: name the script, closure.py"
      call get_command_argument(2, words)
      words = "&options "//trim(words)//" /"
      read (words, nml=options, iostat=stat, iomsg=reason)
      if (stat /= 0) error stop "cnn_over_domains: "//trim(reason)
   end subroutine read_options

   !> Eddies that no network has seen, some hours after they began
   subroutine new_eddies(number)
      integer, intent(in) :: number

      integer :: n

      call fine%begin(domain, seed=7 + number)
      do n = 1, spin_up
         call fine%step(domain)
      end do
      call coarsen(fine, domain, seen, missed)
   end subroutine new_eddies

   subroutine tell_errors(after)
      integer, intent(in) :: after

      if (domain%rank == 0) print "(a, i5, 2(a, f6.3))", "after", after, " steps: error with halos ", losses(1), &
         ", without ", losses(2)
   end subroutine tell_errors

   !> Root mean squares over all ranks, of velocities together
   function scales() result(rms)
      real(wp) :: rms(4)

      real(wp) :: sums(4)

      sums = [sum(seen(:, :, 1)**2), sum(seen(:, :, 2)**2), sum(seen(:, :, 3)**2), sum(missed**2)]
      call MPI_Allreduce(MPI_IN_PLACE, sums, 4, MPI_DOUBLE_PRECISION, MPI_SUM, domain%comm)
      rms = sqrt(sums/(domain%all_nx*domain%all_ny))
   end function scales

   !> Outputs and gradients beside those of one rank with the whole domain
   subroutine compare()
      real(wp) :: whole(domain%all_nx, domain%all_ny, size(seen, 3)), whole_missed(domain%all_nx, domain%all_ny, 1)
      real(wp) :: difference(2)

      whole = domain%whole(seen)
      whole_missed = domain%whole(spread(missed, 3, 1))
      call closure%call("compare", [torch_in(seen), torch_in(missed), torch_in(whole), torch_in(whole_missed), &
         torch_in(domain%y0), torch_in(domain%x0)], [torch_out(difference(1)), torch_out(difference(2))])
      call MPI_Allreduce(MPI_IN_PLACE, difference, 2, MPI_DOUBLE_PRECISION, MPI_MAX, domain%comm)
      call tell_exchange()
      if (domain%rank /= 0) return
      print "(2(a, es8.1))", "to the CNN over the whole domain: outputs differ by ", difference(1), &
         ", gradients by ", difference(2)
      if (any(difference > exact)) then
         print "(a)", "FAILED: they should not differ by more than rounding"
      else
         print "(a, i0, a, i0, a)", "PASSED: ", domain%py, " x ", domain%px, " sub-domains are one domain"
      end if
   end subroutine compare

   subroutine tell_exchange()
      integer :: width, messages, bytes
      logical :: is_recorded

      call closure%call("about", [torch_arg ::], [torch_out(width), torch_out(messages), torch_out(bytes), &
         torch_out(is_recorded)])
      if (domain%rank == 0) print "(3(a, i0), 2a)", "halo of ", width, " cells: rank 0 sends ", messages, &
         " messages, ", bytes, " bytes; the step is ", merge("recorded    ", "not recorded", is_recorded)
   end subroutine tell_exchange

   !> Rank 0 draws what all ranks have
   subroutine draw()
      type(torch_pymodule) :: artist
      real(wp) :: predicted(domain%nx, domain%ny, 2)
      real(wp) :: whole(domain%all_nx, domain%all_ny, 2), whole_missed(domain%all_nx, domain%all_ny, 1)

      call closure%call("predict", [torch_in(seen)], [torch_out(predicted)])
      whole = domain%whole(predicted)
      whole_missed = domain%whole(spread(missed, 3, 1))
      if (domain%rank /= 0) return
      call artist%load(trim(plot))
      call artist%call("draw", [torch_in(trim(folder)), torch_in(whole_missed(:, :, 1)), torch_in(whole), &
         torch_in(history), torch_in(at), torch_in(domain%px), torch_in(domain%py), torch_copy(1e-3_wp*factor*dx)])
   end subroutine draw
end program cnn_over_domains
