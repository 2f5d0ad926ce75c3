! SPDX-License-Identifier: MIT
!> Load by each path, also with options that change what a call does, and some that do not fit
module opening
   use, intrinsic :: iso_fortran_env, only : real64
   use ftn_pytorch
   use mpi_f08
   use seen
   implicit none
   private

   public :: open_it, open_otherwise, reload

contains

   !> Loaded by the path, with nothing else said
   subroutine open_it()
      select case (path)
      case ("direct", "python")
         call model%load(here // trim(file), backend=trim(path), stat=stat, errmsg=errmsg)
      case ("rank", "node")
         call model%load(here // trim(file), communicator=MPI_COMM_WORLD, per=trim(path), stat=stat, errmsg=errmsg)
      case ("gpu")
         call model%load(here // trim(file), communicator=MPI_COMM_WORLD, per="gpu", device="cpu", stat=stat, &
            errmsg=errmsg)
      end select
   end subroutine open_it

   !> Read the file again, and let go of it
   subroutine reload()
      theme = "reload"
      call model%reload(stat=stat, errmsg=errmsg)
      call saw("reload")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: reloaded")
      call model%free()
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: freed")
      call model%free()
      call model%reload(stat=stat, errmsg=errmsg)
      call saw("reload: freed twice")
   end subroutine reload

   !> Options that change what a call does, and some that do not fit
   subroutine open_otherwise()
      type(torch_module) :: alias
      real(real64), target :: turned(rows, 3), column(rows, 1)

      theme = "options"
      call open_with("device nothing", device="nothing")
      call open_with("device meta", device="meta")
      call open_with("dtype float31", dtype="float31")
      call open_with("dtype float32, inputs copy, layout same, mode safe", dtype="float32", inputs="copy", &
         layout="same", mode="safe")
      turned = transpose(x)
      call model%forward([torch_in(turned)], [torch_out(column)], stat=stat, errmsg=errmsg)
      xd(1, :) = column(:, 1)
      call saw("forward: real64 as float32, in the layout of the array")
      call model%call("transposed", [torch_in(turned)], [torch_out(first)], stat=stat, errmsg=errmsg)
      call saw("transposed: in the layout of the array")
      call model%call("shift", [torch_in(turned)], [torch_out(first)], stat=stat, errmsg=errmsg)
      xd = transpose(turned)
      call saw("shift: the input is a copy")
      call model%call("shift", [torch_out(turned)], [torch_out(first)], stat=stat, errmsg=errmsg)
      xd = transpose(turned)
      call saw("shift: the input that may change is a copy")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: the other layout")
      call model%forward([torch_in(whole)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: integers for reals")
      alias = model
      call model%free()
      call alias%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: an alias of what was freed")
      call alias%free()
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call saw("forward: freed twice")
   end subroutine open_otherwise

   !> Load by the path with options, and tell of it
   subroutine open_with(name, layout, dtype, device, inputs, mode)
      !> Of the operation
      character(*), intent(in) :: name
      !> See load
      character(*), intent(in), optional :: layout, dtype, device, inputs, mode

      select case (path)
      case ("direct", "python")
         call model%load(here // trim(file), backend=trim(path), layout=layout, dtype=dtype, inputs=inputs, mode=mode, &
            device=device, stat=stat, errmsg=errmsg)
      case ("rank", "node")
         call model%load(here // trim(file), communicator=MPI_COMM_WORLD, per=trim(path), layout=layout, dtype=dtype, &
            inputs=inputs, mode=mode, device=device, stat=stat, errmsg=errmsg)
      case ("gpu")
         call model%load(here // trim(file), communicator=MPI_COMM_WORLD, per="gpu", layout=layout, dtype=dtype, &
            inputs=inputs, mode=mode, device=on_the_host(device), stat=stat, errmsg=errmsg)
      end select
      call saw("load: " // name)
   end subroutine open_with

   !> per="gpu" wants a device: here the processor, where none is named
   pure function on_the_host(device) result(named)
      !> As open_with has it
      character(*), intent(in), optional :: device
      character(:), allocatable :: named

      named = "cpu"
      if (present(device)) named = device
   end function on_the_host
end module opening
