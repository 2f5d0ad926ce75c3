! SPDX-License-Identifier: MIT
!> A loaded model on one path, with its arguments described: what a program does before, in and after its time loop.
module bench_runner
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : error_unit, real64
   use bench_field, only : field
   use bench_peer, only : peer_call, peer_free, peer_load, peer_model, peer_paths
   use bench_problem, only : problem
   use ftn_pytorch, only : torch_arg, torch_in, torch_module, torch_pymodule, torch_use_inference_mode
   implicit none
   private

   public :: runner, load, call_model, release, keep_warning

   !> The paths by their names on the command line: ours, and those of the library that this driver was built with
   character(*), parameter, public :: paths = &
      "script recorded recording package compiled copy torchscript direct pt2 onnx " // peer_paths

   !> Which component of a runner is called; a time loop compares no texts
   integer, parameter :: by_script = 1, by_saved = 2, by_peer = 3

   !> Why the script runs as it is although it was to be recorded; its time is none of a recorded one
   character(:), allocatable, protected, public, save :: unrecorded

   type :: runner
      integer :: called = 0
      type(torch_pymodule) :: script
      type(torch_module) :: saved
      type(peer_model) :: other
      type(torch_arg) :: inputs(8), outputs(1), target(1)
      integer :: input_count = 0, output_count = 0
      logical :: trains = .false.
   end type runner

contains

   !> Print a warning of the library, and keep one that says that nothing is recorded
   subroutine keep_warning(text)
      character(*), intent(in) :: text

      write (error_unit, "(2a)") "warning: ", text
      if (index(text, " is not recorded: ") > 0) unrecorded = text
   end subroutine keep_warning

   !> Load a model and describe its arguments. errmsg is empty if that went well
   subroutine load(self, path, problem_, output, script, layout, errmsg)
      !> Becomes the model
      type(runner), intent(inout) :: self
      !> One of paths
      character(*), intent(in) :: path
      type(problem), intent(in) :: problem_
      !> Receives the result of each call
      type(field), intent(in) :: output
      !> Path of script.py
      character(*), intent(in) :: script
      !> "reversed" or "same"
      character(*), intent(in) :: layout
      character(:), allocatable, intent(out) :: errmsg

      logical(c_bool), parameter :: yes = .true._c_bool
      type(torch_arg) :: config(3), last(1)
      character(:), allocatable :: suffix, backend
      integer :: i, stat

      errmsg = "" ! which a call that succeeds leaves as it is
      self%trains = problem_%trains
      self%input_count = problem_%input_count
      do i = 1, self%input_count
         self%inputs(i) = problem_%inputs(i)%describe(.false.)
      end do
      if (self%trains) self%target(1) = problem_%target%describe(.false.)
      self%output_count = merge(1, 0, problem_%has_output)
      if (problem_%has_output) self%outputs(1) = output%describe(.true.)

      config = [torch_in("case", problem_%case), torch_in("size", problem_%size), torch_in("folder", problem_%folder)]
      self%called = by_script
      suffix = ""
      backend = "direct"
      select case (path)
      case ("script")
         call self%script%load(script, config=config, layout=layout, stat=stat, errmsg=errmsg)
      case ("recorded")
         last = [torch_in("recorded", yes)]
         call self%script%load(script, config=[config, last], layout=layout, record=.true., stat=stat, errmsg=errmsg)
      case ("compiled")
         call self%script%load(script, config=config, layout=layout, compile=.true., stat=stat, errmsg=errmsg)
      case ("copy")
         last = [torch_in("copied", yes)]
         call self%script%load(script, config=[config, last], layout=layout, inputs="copy", stat=stat, errmsg=errmsg)
      case ("torchscript")
         suffix = ".pt"
         backend = "python"
      case ("direct")
         suffix = ".pt"
      case ("recording")
         suffix = ".ftr"
      case ("package")
         suffix = ".code.pt2"
      case ("pt2")
         suffix = ".pt2"
      case ("onnx")
         suffix = ".onnx"
         backend = "auto"
      case default
         self%called = by_peer
         call peer_load(self%other, path, problem_, output, layout, script, errmsg)
      end select
      if (suffix == "") return
      self%called = by_saved
      call self%saved%load(problem_%model // suffix, layout=layout, backend=backend, stat=stat, errmsg=errmsg)
      if (stat == 0 .and. self%trains .and. suffix == ".pt") call self%saved%call( &
         "ftn_pytorch_create_optimizer_" // trim(problem_%optimizer), [torch_in("lr", problem_%rate)], stat=stat, &
         errmsg=errmsg)
   end subroutine load

   !> One call as in a time loop: forward, or a step of training
   subroutine call_model(self, loss, errmsg)
      type(runner), intent(inout) :: self
      !> Of a step of training
      real(real64), intent(inout) :: loss
      !> Touched by a failure only. Not optional: gfortran 12 would lose its length on the way
      character(:), allocatable, intent(inout) :: errmsg

      integer :: stat
      logical :: completed

      select case (self%called)
      case (by_script)
         if (self%trains) then
            completed = self%script%train(self%inputs(:self%input_count), self%target, loss, stat=stat, errmsg=errmsg)
         else
            call self%script%forward(self%inputs(:self%input_count), self%outputs(:self%output_count), stat=stat, &
               errmsg=errmsg)
         end if
      case (by_peer)
         call peer_call(self%other, loss)
      case default
         if (self%trains) then
            call self%saved%train(self%inputs(:self%input_count), self%target, loss, stat=stat, errmsg=errmsg)
         else
            call self%saved%forward(self%inputs(:self%input_count), self%outputs(:self%output_count), &
               flags=torch_use_inference_mode, stat=stat, errmsg=errmsg)
         end if
      end select
   end subroutine call_model

   !> Release the model
   subroutine release(self)
      type(runner), intent(inout) :: self

      call self%script%free()
      call self%saved%free()
      call peer_free(self%other)
   end subroutine release
end module bench_runner
