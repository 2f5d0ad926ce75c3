! SPDX-License-Identifier: MIT
!> Too little memory on the GPU: a status, a text that says who holds how much, arrays as they were, and the next call
!> is right.
program out_of_memory
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use check, only : expect, expect_status, expect_text, finish, script
   use ftn_pytorch
   use gpu, only : require_gpus
   implicit none

   !> 64 MB, and half of that for torch
   integer, parameter :: large = 16000000
   integer(int64), parameter :: little = 32000000
   type(torch_pymodule) :: here, there
   real(real32), allocatable :: x(:), y(:)

   call require_gpus(1)
   call ftn_pytorch_init(device="cuda:0")
   call here%load(script("memory.py"))
   call there%load(script("memory.py"), device="cuda:0")
   allocate (x(large), y(large))
   call asks_for_too_much()
   call here%call("leave", [torch_in(little)])
   call a_result_does_not_fit(x, y, large)
   call an_input_does_not_fit()
   call here%call("leave", [torch_in(0_int64)])
   call there%forward([torch_in(x)], [torch_out(y)])
   call expect(all(y == 2*x + 1), "the same call with all of the memory")
   call through_a_saved_model("python", x, y, large)
   call through_a_saved_model("auto", x, y, large)
   call finish()

contains

   subroutine expect_lack(stat, errmsg, what)
      integer, intent(in) :: stat
      character(:), allocatable, intent(in) :: errmsg
      !> What was asked for
      character(*), intent(in) :: what

      call expect_status(stat, FTN_PYTORCH_ERR_MEMORY, what, errmsg)
      if (stat == FTN_PYTORCH_OK) return
      call expect_text(errmsg, "CUDA out of memory. Tried to allocate", what // ": what is missing")
      call expect_text(errmsg, "GPU 0 has a total capacity of", what // ": what there is")
      call expect_text(errmsg, "is free", what // ": what is free")
      call expect_text(errmsg, "allocated by PyTorch", what // ": what torch holds")
   end subroutine expect_lack

   !> Something small, which needs little memory
   subroutine expect_next_call(what)
      character(*), intent(in) :: what

      real(real32) :: u(100), v(100)

      call random_number(u)
      call there%forward([torch_in(u)], [torch_out(v)])
      call expect(all(v == 2*u + 1), what // ": the next call")
   end subroutine expect_next_call

   subroutine asks_for_too_much()
      real(real32) :: u(100), v(100)
      character(:), allocatable :: errmsg
      integer :: stat, pass

      u = 1
      v = 7
      do pass = 1, 3
         call there%call("too_much", [torch_in(u)], [torch_out(v)], stat=stat, errmsg=errmsg)
         call expect_lack(stat, errmsg, "a petabyte")
         call expect(all(u == 1) .and. all(v == 7), "a petabyte: arrays of the host stay")
         call expect_next_call("a petabyte")
      end do
   end subroutine asks_for_too_much

   !> Arrays on the GPU, of which torch can hold no other
   subroutine a_result_does_not_fit(x, y, n)
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      character(:), allocatable :: errmsg
      integer :: stat, i

      x = 1
      y = 7
      !$acc enter data copyin(x, y)
      !$acc host_data use_device(x, y)
      call here%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      !$acc end host_data
      call expect_lack(stat, errmsg, "a result on the GPU")
      call expect_next_call("a result on the GPU")
      !$acc parallel loop present(x, y)
      do i = 1, n
         y(i) = y(i) + x(i)
      end do
      !$acc exit data delete(x) copyout(y)
      call expect(all(y == 8), "a result on the GPU: input and output stay, and the program can go on")
      y = 7
      !$acc enter data copyin(x)
      !$acc host_data use_device(x)
      call here%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      !$acc end host_data
      !$acc exit data delete(x)
      call expect_lack(stat, errmsg, "a result for the host")
      call expect(all(y == 7), "a result for the host: the array stays")
   end subroutine a_result_does_not_fit

   subroutine an_input_does_not_fit()
      character(:), allocatable :: errmsg
      integer :: stat

      x = 1
      y = 7
      call there%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_lack(stat, errmsg, "an input of the host")
      call expect(all(x == 1) .and. all(y == 7), "an input of the host: arrays stay")
      call expect_next_call("an input of the host")
   end subroutine an_input_does_not_fit

   subroutine through_a_saved_model(backend, x, y, n)
      !> Option of load
      character(*), intent(in) :: backend
      integer, intent(in) :: n
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_pymodule) :: writer
      type(torch_module) :: affine
      character(:), allocatable :: errmsg
      integer :: stat

      x = 1
      y = 7
      call writer%load(script("device.py"))
      call writer%call("save_affine", [torch_in("memory.pt")])
      call affine%load("memory.pt", backend=backend, device="cuda:0")
      !$acc enter data copyin(x)
      call here%call("leave", [torch_in(little)])
      !$acc host_data use_device(x)
      call affine%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      !$acc end host_data
      call expect_lack(stat, errmsg, "a saved model, " // backend)
      call expect(all(y == 7), backend // ": the output stays")
      call here%call("leave", [torch_in(0_int64)])
      !$acc host_data use_device(x)
      call affine%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      !$acc exit data delete(x)
      call expect(all(y == 3), backend // ": the next call")
   end subroutine through_a_saved_model
end program out_of_memory
