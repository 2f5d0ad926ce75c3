! SPDX-License-Identifier: MIT
!> A tracer model on many ranks trains one network while it runs. The network then replaces what it has learnt from.
!>
!>     mpirun -n 4 mpi_training <learner.py> <folder> ["steps=600 cells=64 kill_at=0 per_node=F"]
program mpi_training
   use, intrinsic :: iso_fortran_env, only : error_unit, real64
   use domains, only : domain
   use ftn_pytorch, only : ftn_pytorch_on_error, ftn_pytorch_set_threads
   use learnt, only : close_network, is_equal_on_all_ranks, learn, open_network, predicted, restore_network, &
      write_network
   use mpi_f08
   use transport, only : differences, flow, limited, new_flow, new_tracer, nothing, step
   implicit none

   !> Steps between checkpoints, and steps of the runs that are compared
   integer, parameter :: interval = 100, test_steps = 200

   character(:), allocatable :: script, folder
   integer :: steps = 600, cells = 64, kill_at = 0
   logical :: per_node = .false., all_passed = .true.
   type(domain) :: square
   type(flow) :: eddies
   real(real64), allocatable :: q(:, :), d(:, :), target(:)
   real(real64) :: loss
   integer :: now, first

   call MPI_Init()
   call ftn_pytorch_on_error(abort_all)
   call read_options()
   call ftn_pytorch_set_threads(1)
   square = domain(cells)
   eddies = new_flow(square)
   call new_tracer(q, square, eddies)
   call open_network(script, folder//"/log.csv", square, merge("node", "rank", per_node))

   first = restore_network(folder) + 1
   if (first > 1) call square%read_field(name_of_field(first - 1), q(1:square%n(1), 1:square%n(2)))
   if (first > 1 .and. square%rank == 0) print "(a, i0)", "going on after step ", first - 1

   loss = 0
   do now = first, steps
      d = differences(q, square, eddies)
      target = limited(d)
      loss = learn(d, target)
      call step(q, square, eddies, limited, forced=.true.)
      if (mod(now, interval) == 0) then
         if (square%rank == 0) print "(a, i0, a, es10.3)", "step ", now, ": loss ", loss
         ! The field first: then every checkpoint has one
         call square%write_field(name_of_field(now), q(1:square%n(1), 1:square%n(2)))
         call write_network(folder, now)
      end if
      if (now == kill_at) call abort_all(9, "killed on purpose")
   end do

   call compare()
   call close_network()
   call MPI_Finalize()
   if (.not. all_passed) error stop 1

contains

   !> Three runs without forcing, from where the training has ended
   subroutine compare()
      real(real64), allocatable :: exact(:, :), upwind(:, :), corrected(:, :)
      real(real64) :: error_upwind, error_corrected, mass, variance
      integer :: i, unit

      allocate (exact, upwind, corrected, source=q)
      associate (nx => square%n(1), ny => square%n(2))
         mass = square%total(q(1:nx, 1:ny))
         do i = 1, test_steps
            call step(exact, square, eddies, limited, forced=.false.)
            call step(upwind, square, eddies, nothing, forced=.false.)
            call step(corrected, square, eddies, predicted, forced=.false.)
         end do
         variance = square%total(exact(1:nx, 1:ny)**2) - square%total(exact(1:nx, 1:ny))**2/product(square%cells)
         error_upwind = sqrt(square%total((upwind(1:nx, 1:ny) - exact(1:nx, 1:ny))**2)/variance)
         error_corrected = sqrt(square%total((corrected(1:nx, 1:ny) - exact(1:nx, 1:ny))**2)/variance)
         mass = abs(square%total(corrected(1:nx, 1:ny)) - mass)/product(square%cells)
      end associate
      if (square%rank == 0) then
         print "(a, f6.4, a)", "upwind:                ", error_upwind, " of the standard deviation off"
         print "(a, f6.4, a)", "upwind with a network: ", error_corrected, " of the standard deviation off"
         open (newunit=unit, file=folder//"/result.txt", status="replace", action="write")
         write (unit, "(es24.17)") loss, error_upwind, error_corrected
         close (unit)
      end if
      call verdict(error_corrected < 0.2_real64*error_upwind, "the network takes away four fifths of the error")
      ! Two ranks predict the faces between them, in batches of other sizes, and so with other roundings
      call verdict(mass < 1e-8_real64, "no tracer is lost or made, but by rounding in single precision")
      call verdict(is_equal_on_all_ranks(), "all ranks have the same network, bit for bit")
   end subroutine compare

   subroutine verdict(passed, claim)
      logical, intent(in) :: passed
      character(*), intent(in) :: claim

      all_passed = all_passed .and. passed
      if (square%rank == 0) print "(2a)", merge("PASSED: ", "FAILED: ", passed), claim
   end subroutine verdict

   function name_of_field(at) result(name)
      integer, intent(in) :: at
      character(:), allocatable :: name

      character(12) :: digits

      write (digits, "(i12.12)") at
      name = folder//"/field-"//digits//".bin"
   end function name_of_field

   !> Script, folder, and what is other than above, as a namelist
   subroutine read_options()
      character(4096) :: words(3)
      character(256) :: reason
      integer :: i, stat
      namelist /options/ steps, cells, kill_at, per_node

      do i = 1, size(words)
         call get_command_argument(i, words(i))
      end do
      if (words(2) == "") call abort_all(1, "mpi_training: name a script, such as learner.py, and a folder")
      words(3) = "&options "//trim(words(3))//" /"
      read (words(3), nml=options, iostat=stat, iomsg=reason)
      if (stat /= 0) call abort_all(1, "mpi_training: "//trim(reason))
      script = trim(words(1))
      folder = trim(words(2))
      call execute_command_line("mkdir -p '"//folder//"'")
   end subroutine read_options

   !> A rank that fails must not leave the others waiting
   subroutine abort_all(code, text)
      integer, intent(in) :: code
      character(*), intent(in) :: text

      write (error_unit, "(a)") text
      flush (error_unit)
      call MPI_Abort(MPI_COMM_WORLD, code)
   end subroutine abort_all
end program mpi_training
