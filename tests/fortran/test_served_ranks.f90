! SPDX-License-Identifier: MIT
!> Ranks share a network in one server, which is killed and comes back. The file answers meanwhile, and no call is lost.
!>
!>     test_served_ranks ADDRESS FILE [STEPS]    such as triton+grpc://localhost:8001/heating output/heating.pt
program test_served_ranks
   use, intrinsic :: iso_fortran_env, only: real32
   use mpi_f08
   use ftn_pytorch
   implicit none
   integer, parameter :: levels = 8, columns = 1024, substeps = 400
   real(real32), parameter :: dt = 0.01_real32
   type(torch_module) :: heating
   real(real32) :: served(levels, columns), local(levels, columns), difference, largest
   integer :: rank, steps
   character(:), allocatable :: text

   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   steps = 600
   text = argument(3)
   if (text /= "") read (text, *) steps
   call heating%load(argument(1), fallback=argument(2))
   call run(served, is_told=rank == 0)
   ! The same without a server. The first module is released, and tells how often the file has answered.
   call heating%load(argument(2))
   call run(local, is_told=.false.)
   difference = maxval(abs(served - local))
   call MPI_Reduce(difference, largest, 1, MPI_REAL4, MPI_MAX, 0, MPI_COMM_WORLD)
   if (rank == 0) print "(a, es8.1)", "largest difference from a run without a server ", largest
   if (.not. difference < 1e-4_real32) error stop "FAILED"
   call MPI_Finalize()

contains

   subroutine run(temperature, is_told)
      real(real32), intent(out) :: temperature(:, :)
      logical, intent(in) :: is_told
      real(real32) :: rate(levels, columns)
      integer :: i, k, step

      do i = 1, columns
         temperature(:, i) = [(sin(0.02_real32*i*(rank + 1)) + cos(0.7_real32*k), k=1, levels)]
      end do
      do step = 1, steps
         call diffuse(temperature)
         call heating%forward([torch_in(temperature)], [torch_out(rate)])
         temperature = temperature + dt*rate
         if (is_told .and. mod(step, 100) == 0) print "(a, i5)", "step ", step
         if (is_told) flush (6)
      end do
   end subroutine run

   !> The rest of a model: explicit diffusion between the columns of this rank
   subroutine diffuse(values)
      real(real32), intent(inout) :: values(:, :)
      integer :: i

      do i = 1, substeps
         values = values + 1e-3_real32*(cshift(values, 1, 2) - 2*values + cshift(values, -1, 2))
      end do
   end subroutine diffuse

   function argument(number) result(value)
      integer, intent(in) :: number
      character(:), allocatable :: value
      integer :: length

      call get_command_argument(number, length=length)
      allocate (character(length) :: value)
      call get_command_argument(number, value)
   end function argument

end program test_served_ranks
