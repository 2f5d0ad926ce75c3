! SPDX-License-Identifier: MIT
!> The functions of algebra.py and of other scripts by each path that FPT_HOST_PATHS names, for a main of any language.
!> A path leaves the files PATH.said, with status and message, and PATH.found, with the numbers.
module host
   use, intrinsic :: iso_c_binding, only : c_int
   use, intrinsic :: iso_fortran_env, only : real64
#ifdef WITH_MPI
   use mpi_f08
#endif
   use ftn_pytorch
   use by_tensors, only : algebra_by_tensors
   implicit none
   private

   public :: run_all

   interface
      !> What the program does with its libraries: 0 if it is right
      integer(c_int) function own_work() bind(c)
         import :: c_int
         implicit none
      end function own_work
   end interface

   integer, save :: stat, file
   !> Of the names of files, empty in rank 0
   character(:), allocatable, save :: errmsg, rank
   real(real64), target, save :: x(96, 96, 2)
   type(torch_module), save :: model

contains

   subroutine run_all() bind(c)
      character(200) :: paths
      integer :: place

      call expect_own_work("before")
      rank = ""
#ifdef WITH_MPI
      call MPI_Init()
      call MPI_Comm_rank(MPI_COMM_WORLD, place)
      rank = repeat("-other", place)
#endif
      open (newunit=file, file="input", access="stream", form="unformatted", action="read")
      read (file) x
      close (file)
      call get_environment_variable("FPT_HOST_PATHS", paths)
      do while (paths /= "")
         place = scan(paths, " ")
         call run(paths(:place - 1))
         paths = adjustl(paths(place:))
      end do
#ifdef WITH_MPI
      call MPI_Finalize()
#endif
      call expect_own_work("after")
   end subroutine run_all

   subroutine expect_own_work(when)
      !> Before or after the paths
      character(*), intent(in) :: when

      if (own_work() /= 0) error stop "what the program does with its libraries is wrong " // when
   end subroutine expect_own_work

   subroutine run(path)
      !> What to load, and how
      character(*), intent(in) :: path
      type(torch_tensor) :: tensor

      stat = 0
      errmsg = ""
      open (newunit=file, file=path // rank // ".found", access="stream", form="unformatted", status="replace")
      select case (path)
      case ("recorded")
         call model%load("algebra.py", record=.true., stat=stat, errmsg=errmsg)
         call forward("ftn_pytorch_forward", times=9)
      case ("recording-direct", "recording-python")
         call model%load("algebra.ftr", backend=path(11:), stat=stat, errmsg=errmsg)
         call forward("ftn_pytorch_forward")
      case ("torchscript-direct", "torchscript-python")
         call model%load("algebra.pt", backend=path(13:), stat=stat, errmsg=errmsg)
         call forward("forward")
         call forward("squares")
#ifdef WITH_MPI
      case ("node")
         call model%load("algebra.py", communicator=MPI_COMM_WORLD, per="node", stat=stat, errmsg=errmsg)
         call forward("ftn_pytorch_forward")
         call forward("squares")
#endif
      case ("tensors")
         call algebra_by_tensors(x, tensor, stat, errmsg)
         if (stat == 0) call put(tensor)
      case default
         call model%load(path // ".py", stat=stat, errmsg=errmsg)
         call forward("ftn_pytorch_forward")
         if (path == "algebra") call forward("squares")
      end select
      close (file)
      open (newunit=file, file=path // rank // ".said", status="replace")
      write (file, "(i0, 1x, a)") stat, errmsg
      close (file)
      call model%free()
   end subroutine run

   !> Call a function, and write what the last call gives
   subroutine forward(name, times)
      !> Of the file that is loaded
      character(*), intent(in) :: name
      !> Calls; default: 1
      integer, intent(in), optional :: times
      type(torch_results) :: results
      type(torch_tensor) :: tensor
      integer :: i, count

      count = 1
      if (present(times)) count = times
      do i = 1, count
         if (stat == 0) call model%call(name, [torch_in(x)], results, stat=stat, errmsg=errmsg)
      end do
      if (stat == 0) call results%get(1, tensor, stat=stat, errmsg=errmsg)
      if (stat == 0) call put(tensor)
   end subroutine forward

   subroutine put(tensor)
      !> Of real64, with one axis
      type(torch_tensor), intent(inout) :: tensor
      real(real64), pointer :: numbers(:)

      call tensor%to_array(numbers, stat=stat, errmsg=errmsg)
      if (stat == 0) write (file) numbers
   end subroutine put
end module host
