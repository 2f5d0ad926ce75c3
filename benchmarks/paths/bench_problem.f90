! SPDX-License-Identifier: MIT
!> One case in one size: which model, the arrays that go in, and what has to come out. Read from what models.py writes.
module bench_problem
   use, intrinsic :: iso_fortran_env, only : int64, real64
   use bench_field, only : field, read_field
   implicit none
   private

   public :: problem, read_problem

   !> At most eight inputs and one output
   type :: problem
      character(:), allocatable :: case
      integer :: size = 0
      !> Folder of all files, and the model in it without its extension
      character(:), allocatable :: folder, model
      type(field) :: inputs(8), target, expected
      integer :: input_count = 0
      logical :: has_output = .false., trains = .false.
      !> "adam" or "sgd", its learning rate, and the losses of plain Python
      character(8) :: optimizer = ""
      real(real64) :: rate = 0
      real(real64), allocatable :: losses(:)
      !> Largest difference to plain Python
      real(real64) :: tolerance = 0
   end type problem

contains

   !> Read one problem; found is false if models.py has not written it
   subroutine read_problem(self, case, size, folder, found)
      !> Becomes the problem
      type(problem), intent(inout) :: self
      character(*), intent(in) :: case, folder
      integer, intent(in) :: size
      logical, intent(out) :: found

      character(:), allocatable :: stem
      character(256) :: line, role
      character(16) :: number
      integer :: unit, losses, status, steps

      call free_problem(self)
      write (number, "(i0)") size
      stem = folder // "/" // case // "_" // trim(number)
      inquire (file=stem // "/problem.txt", exist=found)
      if (.not. found) return
      self%case = case
      self%size = size
      self%folder = folder
      open (newunit=unit, file=stem // "/problem.txt", status="old", action="read")
      do
         read (unit, "(a)", iostat=status) line
         if (status /= 0) exit
         read (line, *) role
         line = adjustl(line(len_trim(role) + 1:))
         select case (role)
         case ("model")
            self%model = folder // "/" // trim(line)
         case ("tolerance")
            read (line, *) self%tolerance
         case ("input")
            self%input_count = self%input_count + 1
            call read_field(self%inputs(self%input_count), line, stem)
         case ("target")
            call read_field(self%target, line, stem)
         case ("output")
            self%has_output = .true.
            call read_field(self%expected, line, stem)
         case ("optimizer")
            self%trains = .true.
            read (line, *) self%optimizer, self%rate, steps
            allocate (self%losses(steps))
            open (newunit=losses, file=stem // "/losses.bin", access="stream", form="unformatted", status="old", &
               action="read")
            read (losses) self%losses
            close (losses)
         case default
            error stop "problem.txt has an unknown line"
         end select
      end do
      close (unit)
   end subroutine read_problem

   !> Release the arrays
   subroutine free_problem(self)
      type(problem), intent(inout) :: self

      integer :: i

      do i = 1, self%input_count
         call self%inputs(i)%release()
      end do
      call self%target%release()
      call self%expected%release()
      self%input_count = 0
      self%has_output = .false.
      self%trains = .false.
      if (allocated(self%losses)) deallocate (self%losses)
   end subroutine free_problem
end module bench_problem
