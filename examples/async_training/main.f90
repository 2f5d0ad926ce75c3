! SPDX-License-Identifier: MIT
!> A network learns to emulate the costly part of a model while the model runs, and the model does not wait for it.
!>
!>     async_training <emulator.py> [--learn none|synchronous|thread|process] [--steps n] [--output folder]
!>
!> Without --learn all of them run, one after the other. Ends with exit code 1 if a claim at the end does not hold.
program async_training
   use, intrinsic :: iso_fortran_env, only: error_unit
   use ftn_pytorch
   use kinetics, only: dp, start, react, diffuse
   use timeline, only: now, begin_timeline, add_to_timeline, end_timeline
   implicit none

   integer, parameter :: cells = 512, reaction_steps = 200
   real(dp), parameter :: dt = 0.1_dp
   character(11), parameter :: ways(4) = [character(11) :: "none", "synchronous", "thread", "process"]
   character(:), allocatable :: script, only, folder
   real(dp) :: final(2, cells, size(ways)), milliseconds(size(ways)), skill(size(ways))
   logical :: has_run(size(ways))
   integer :: steps, way

   call read_arguments()
   call ftn_pytorch_set_threads(1)
   has_run = .false.
   print "(a)", "learning      ms per step of the model    R2 of the increments"
   do way = 1, size(ways)
      if (only /= "" .and. only /= ways(way)) cycle
      call run(trim(ways(way)), final(:, :, way), milliseconds(way), skill(way))
      has_run(way) = .true.
      if (way == 1) then
         print "(a, f11.3)", ways(way), milliseconds(way)
      else
         print "(a, f11.3, f26.4)", ways(way), milliseconds(way), skill(way)
      end if
   end do
   do way = 2, size(ways)
      if (.not. has_run(way)) cycle
      if (.not. skill(way) > 0.95_dp) call fail(trim(ways(way))//": the network has not learnt the reaction")
      if (has_run(1)) then
         if (any(final(:, :, way) /= final(:, :, 1))) call fail(trim(ways(way))//": learning has changed the model")
      end if
   end do

contains

   !> The model, with learning of one kind beside it
   subroutine run(learn, c, milliseconds, skill)
      character(len=*), intent(in) :: learn
      real(dp), intent(out) :: c(:, :), milliseconds, skill

      type(torch_pymodule) :: emulator
      real(dp), target :: before(2, cells), added(2, cells)
      real(dp) :: begin, reacted, called, total, loss
      character(:), allocatable :: timeline
      logical :: completed
      integer :: step, series

      timeline = file_of(learn, "training")
      if (learn /= "none") call emulator%load(script, dtype="float32", background=(learn == "process"), &
         config=[torch_in("learn", learn), torch_in("timeline", timeline)])
      if (folder /= "") then
         call begin_timeline(file_of(learn, "model"))
         open (newunit=series, file=file_of(learn, "loss"), action="write", status="replace")
         write (series, "(a)") "seconds,loss"
      end if
      call start(c)
      total = 0
      do step = 1, steps
         begin = now()
         call diffuse(c, dt)
         before = c
         call react(c, dt, reaction_steps)
         reacted = now()
         called = reacted
         if (learn /= "none") then
            added = c - before
            completed = emulator%train([torch_in(before)], [torch_in(added)], loss)
            called = now()
            call add_to_timeline("call", reacted, called)
            if (folder /= "") write (series, "(f0.6, ',', es12.5)") total, loss
         end if
         call add_to_timeline("model", begin, reacted)
         ! The first steps load, compile and record
         if (step > steps/2) total = total + called - begin
      end do
      milliseconds = 1000*total/(steps - steps/2)
      skill = 0
      if (learn /= "none") skill = skill_of(emulator, c)
      if (folder /= "") close (series)
      call end_timeline()
      call emulator%free()
   end subroutine run

   !> Share of the variance that the network explains in a step that it has not seen: 1 is perfect
   real(dp) function skill_of(emulator, c)
      type(torch_pymodule), intent(in) :: emulator
      real(dp), intent(in) :: c(:, :)

      real(dp), target :: before(2, cells), predicted(2, cells), after(2, cells)
      integer :: i

      before = c
      after = c
      call react(after, dt, reaction_steps)
      call emulator%forward([torch_in(before)], [torch_out(predicted)])
      skill_of = 1
      do i = 1, 2
         associate (added => after(i, :) - before(i, :))
            skill_of = min(skill_of, 1 - sum((predicted(i, :) - added)**2)/sum((added - sum(added)/cells)**2))
         end associate
      end do
   end function skill_of

   !> A file of this run; empty without --output
   function file_of(learn, what) result(file)
      character(len=*), intent(in) :: learn, what
      character(:), allocatable :: file

      file = ""
      if (folder /= "") file = folder//"/"//learn//"_"//what//".csv"
   end function file_of

   subroutine read_arguments()
      character(:), allocatable :: value
      integer :: i, stat

      script = argument(1)
      if (script == "") script = "emulator.py"
      only = ""
      folder = ""
      steps = 1000
      do i = 2, command_argument_count(), 2
         stat = 0
         select case (argument(i))
         case ("--learn")
            only = argument(i + 1)
            if (.not. any(ways == only)) stat = 1
         case ("--steps")
            value = argument(i + 1)
            read (value, *, iostat=stat) steps
         case ("--output")
            folder = argument(i + 1)
         case default
            stat = 1
         end select
         if (stat /= 0) call fail("not understood: "//argument(i)//" "//argument(i + 1))
      end do
   end subroutine read_arguments

   function argument(i) result(text)
      integer, intent(in) :: i
      character(:), allocatable :: text
      character(4096) :: buffer

      call get_command_argument(i, buffer)
      text = trim(buffer)
   end function argument

   subroutine fail(text)
      character(len=*), intent(in) :: text

      write (error_unit, "(a)") "async_training: "//text
      stop 1
   end subroutine fail

end program async_training
