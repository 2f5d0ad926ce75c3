! SPDX-License-Identifier: MIT
!> Train a network with its script, go on without Python, come back to the script, and compare all of it with a
!> training that never left the script. Each part is a process of its own.
!>
!>     trained_without_python begin <closure.py> <folder>
!>     trained_without_python alone <folder>
!>     trained_without_python back <closure.py> <folder>
program trained_without_python
   use ftn_pytorch
   use columns, only : n, sample
   use verdicts, only : has_failed, is_mapped, same, verdict
   implicit none
   !> Steps after which the script stops, the program without Python stops, and all is compared
   integer, parameter :: recorded = 50, alone = 150, last = 250
   real :: x(2, n), heating(1, n), losses(last), wanted(last)
   character(4096) :: words(3)
   character(:), allocatable :: folder
   integer :: i

   do i = 1, size(words)
      call get_command_argument(i, words(i))
   end do
   folder = trim(words(merge(2, 3, words(1) == "alone")))
   select case (words(1))
   case ("begin")
      call begin(trim(words(2)))
   case ("alone")
      call go_on_alone()
   case ("back")
      call come_back(trim(words(2)))
   case default
      error stop "usage: trained_without_python (begin | back) <closure.py> <folder>, or: alone <folder>"
   end select
   if (has_failed) error stop "FAILED"

contains

   !> The script trains, and its recorded functions go into a file. Then it trains on, for the comparison
   subroutine begin(script)
      character(*), intent(in) :: script
      type(torch_pymodule) :: closure
      real, allocatable :: state(:)
      integer :: step

      call closure%load(script, record=.true.)
      do step = 1, last
         call sample(step, x, heating)
         call closure%train_step([torch_in(x)], [torch_in(heating)], losses(step))
         if (step <= recorded) call closure%forward([torch_in(x)], [torch_out(heating)])
         if (step == recorded) call closure%save(folder//"/closure.ftr")
      end do
      print "(a, f8.5, a, f8.5)", "loss in Python:", losses(1), " at first, at the end ", losses(last)
      ! Otherwise it would say nothing that neither is found in the next process
      call verdict(is_mapped("libpython") .and. is_mapped("libtorch_python"), &
         "Python and its torch are in this process")
      call closure_state(closure, state)
      call write_numbers("losses", losses)
      call write_numbers("state", state)
   end subroutine begin

   !> The file trains, in a process without Python
   subroutine go_on_alone()
      type(torch_module) :: closure
      real(kind(1d0)) :: rate
      integer :: step

      call closure%load(folder//"/closure.ftr", backend="direct")
      call ftn_pytorch_set_threads(1)
      call closure%get("lr", rate)
      print "(a, es7.1)", "learning rate in the file: ", rate
      do step = recorded + 1, alone
         call sample(step, x, heating)
         call closure%train_step([torch_in(x)], [torch_in(heating)], losses(step))
      end do
      call closure%forward([torch_in(x)], [torch_out(heating)])
      call closure%checkpoint(folder//"/checkpoints", step=alone)
      call verdict(.not. (is_mapped("libpython") .or. is_mapped("libtorch_python")), &
         "neither libpython nor libtorch_python is in this process")
      call read_numbers("losses", wanted)
      call verdict(same(losses(recorded + 1:alone), wanted(recorded + 1:alone)), &
         "100 losses without Python are those of the script, bit for bit")
      call write_numbers("prediction", heating(1, :))
   end subroutine go_on_alone

   !> The script goes on from the checkpoint that was written without Python
   subroutine come_back(script)
      character(*), intent(in) :: script
      type(torch_pymodule) :: closure
      real, allocatable :: state(:), wanted_state(:)
      real :: predicted(n)
      integer :: found, step

      call closure%load(script)
      call closure%restore(folder//"/checkpoints", found=found)
      call verdict(found == alone, "the script restores the checkpoint of step 150")
      call sample(alone, x, heating)
      call closure%forward([torch_in(x)], [torch_out(heating)])
      call read_numbers("prediction", predicted)
      call verdict(same(heating(1, :), predicted), "its prediction is that of the program without Python, bit for bit")
      do step = alone + 1, last
         call sample(step, x, heating)
         call closure%train_step([torch_in(x)], [torch_in(heating)], losses(step))
      end do
      call read_numbers("losses", wanted)
      call verdict(same(losses(alone + 1:), wanted(alone + 1:)), &
         "100 losses after the return are those of the script alone, bit for bit")
      call closure_state(closure, state)
      allocate (wanted_state, mold=state)
      call read_numbers("state", wanted_state)
      call verdict(same(state, wanted_state), "so are parameters, moments of AdamW and random state, bit for bit")
   end subroutine come_back

   subroutine closure_state(closure, state)
      type(torch_pymodule), intent(inout) :: closure
      real, allocatable, intent(out) :: state(:)
      type(torch_results) :: results
      real, pointer :: values(:)

      call closure%call("state", results)
      call results%to_array(1, values)
      state = values
      call results%free()
   end subroutine closure_state

   subroutine write_numbers(name, values)
      character(*), intent(in) :: name
      real, intent(in) :: values(:)
      integer :: unit

      open (newunit=unit, file=folder//"/"//name, form="unformatted", access="stream", status="replace")
      write (unit) size(values), values
      close (unit)
   end subroutine write_numbers

   subroutine read_numbers(name, values)
      character(*), intent(in) :: name
      real, intent(out) :: values(:)
      integer :: count, unit

      open (newunit=unit, file=folder//"/"//name, form="unformatted", access="stream", status="old")
      read (unit) count
      if (count /= size(values)) error stop "there are more or fewer numbers in "//name
      read (unit) values
      close (unit)
   end subroutine read_numbers
end program trained_without_python
