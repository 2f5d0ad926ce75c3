! SPDX-License-Identifier: MIT
!> Two GPUs in one process, and one of two for each rank of a node.
!>
!>     gpu_several_gpus     modules and memory on both
!>     gpu_several_gpus 1   on "cuda", which is that GPU: OMPI_COMM_WORLD_LOCAL_RANK is set to the same number
program several_gpus
   use, intrinsic :: iso_c_binding, only : c_char, c_f_procpointer, c_funptr, c_int, c_null_char, c_null_ptr, c_ptr
   use, intrinsic :: iso_fortran_env, only : int64, real32
   use openacc, only : acc_device_nvidia, acc_set_device_num
   use check, only : address_of, expect, finish, script
   use ftn_pytorch
   use gpu, only : count_warnings, require_gpus, warnings_with
   implicit none

   integer, parameter :: n = 1000, queue = 1
   real(real32) :: x(n), y(n)
   character(1) :: rank
   integer :: i

   interface
      function dlopen(file, flags) bind(c) result(library)
         import :: c_char, c_int, c_ptr
         implicit none
         character(kind=c_char), intent(in) :: file(*)
         integer(c_int), value :: flags
         type(c_ptr) :: library
      end function dlopen

      function dlsym(library, name) bind(c) result(address)
         import :: c_char, c_funptr, c_ptr
         implicit none
         type(c_ptr), value :: library
         character(kind=c_char), intent(in) :: name(*)
         type(c_funptr) :: address
      end function dlsym
   end interface

   abstract interface
      function get_current(context) bind(c) result(error)
         import :: c_int, c_ptr
         implicit none
         type(c_ptr), intent(out) :: context
         integer(c_int) :: error
      end function get_current
   end interface

   call get_command_argument(1, rank)
   call require_gpus(2)
   call count_warnings()
   if (rank /= "") then
      call of_a_rank(iachar(rank) - iachar("0"), x, y)
   else
      call ftn_pytorch_init(device="cuda:0")
      call memory_of_another_gpu(x)
      call alternately(x, y)
   end if
   call finish()

contains

   !> The GPU of this rank, from start to end
   subroutine of_a_rank(gpu, x, y)
      !> What "cuda" should be
      integer, intent(in) :: gpu
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_pymodule) :: model
      real(real32) :: u(n), v(n)
      integer :: seen, round

      call ftn_pytorch_init(device="cuda")
      call acc_set_device_num(gpu, acc_device_nvidia)
      call model%load(script("device.py"), device="cuda")
      call random_number(u)
      call model%forward([torch_in(u)], [torch_out(v)])
      call expect(all(v == 2*u + 1), "arrays of the host")
      call model%call("index", [torch_in(u)], [torch_out(seen)])
      call expect(seen == gpu, "which the script sees on the GPU of this rank")

      x = 0
      y = 0
      !$acc enter data copyin(x, y)
      do round = 1, 10
         !$acc parallel loop present(x)
         do i = 1, n
            x(i) = i + round
         end do
         !$acc host_data use_device(x, y)
         call model%forward([torch_in(x)], [torch_out(y)])
         call model%call("index", [torch_in(x)], [torch_out(seen)])
         !$acc end host_data
         call expect(seen == gpu, "arrays of OpenACC are on that GPU")
         !$acc update self(y)
         call expect(all(y == [(2*(i + round) + 1, i=1, n)]), "and the numbers are right")
      end do

      !$acc parallel loop present(x) async(queue)
      do i = 1, n
         x(i) = -i
      end do
      call model%set_stream(queue=queue)
      !$acc host_data use_device(x, y)
      call model%forward([torch_in(x)], [torch_out(y)])
      !$acc end host_data
      call model%set_stream()
      !$acc update self(y)
      call expect(all(y == [(1 - 2*i, i=1, n)]), "a queue of that GPU")
      !$acc exit data delete(x, y)
      call expect(warnings_with("in every call") == 0, "no array was copied to another GPU")
      call expect(warnings_with("ftn_pytorch_init(device=") == 0, "OpenACC has adopted the context of torch")
   end subroutine of_a_rank

   !> The number of the CUDA context that is current on this thread
   function current_context() result(context)
      integer(int64) :: context

      procedure(get_current), pointer :: get
      integer(c_int), parameter :: now = 2
      type(c_ptr) :: current

      call c_f_procpointer(dlsym(dlopen("libcuda.so.1" // c_null_char, now), "cuCtxGetCurrent" // c_null_char), get)
      context = -1
      if (get(current) == 0) context = address_of(current)
   end function current_context

   !> An array of a script on a GPU, as memory that no Fortran array describes
   function array_on(gpu, model) result(address)
      integer, intent(in) :: gpu
      type(torch_pymodule), intent(in) :: model
      type(c_ptr) :: address

      integer(int64) :: number

      call model%call("numbers_on", [torch_in(gpu), torch_in(n)], [torch_out(number)])
      address = transfer(number, c_null_ptr)
   end function array_on

   !> Arrays on GPU 1 for models on GPU 0
   subroutine memory_of_another_gpu(x)
      real(real32), intent(inout) :: x(n)

      type(torch_pymodule) :: owner, on_0
      type(torch_module) :: saved
      type(c_ptr) :: address
      real(real32) :: u(n), v(n), doubled(n)
      integer(int64) :: before
      integer :: pass, seen

      doubled = [(2*i + 1, i=1, n)]
      !$acc parallel loop copyout(x)
      do i = 1, n
         x(i) = i
      end do
      call expect(sum(x) == n*(n + 1)/2, "a region before torch is used")
      before = current_context()
      call expect(before > 0, "the program has a context")

      call owner%load(script("device.py"))
      address = array_on(1, owner)
      call owner%call("index", [torch_in(address, [n], "float32")], [torch_out(seen)])
      call expect(seen == 1, "a script without device= gets an array where it is")
      call owner%forward([torch_in(address, [n], "float32")], [torch_out(v)])
      call expect(all(v == doubled), "and computes there")
      call expect(warnings_with("in every call") == 0, "without a copy")

      call on_0%load(script("device.py"), device="cuda:0")
      do pass = 1, 3
         v = 0
         call on_0%forward([torch_in(address, [n], "float32")], [torch_out(v)])
         call expect(all(v == doubled), "a script on GPU 0 gets a copy")
      end do
      call on_0%call("index", [torch_in(address, [n], "float32")], [torch_out(seen)])
      call expect(seen == 0, "which is on GPU 0")
      call expect(warnings_with("in every call") == 1, "one warning tells of the copies")

      call random_number(u)
      call on_0%forward([torch_in(u)], [torch_out(address, [n], "float32")])
      call owner%call("read_on", [torch_in(1)], [torch_out(v)])
      call expect(all(v == 2*u + 1), "its results are written on GPU 1")
      call on_0%call("triple", [torch_out(address, [n], "float32")])
      call owner%call("read_on", [torch_in(1)], [torch_out(v)])
      call expect(all(v == 3*(2*u + 1)), "and what it changes goes back there")

      address = array_on(1, owner)
      call owner%call("save_affine", [torch_in("several_gpus.pt")])
      do pass = 1, 2
         if (pass == 1) call saved%load("several_gpus.pt", backend="python", device="cuda:0")
         if (pass == 2) call saved%load("several_gpus.pt", device="cuda:0")
         v = 0
         call saved%forward([torch_in(address, [n], "float32")], [torch_out(v)])
         call expect(all(v == doubled), "a saved model on GPU 0 gets a copy")
         call saved%forward([torch_in(u)], [torch_out(address, [n], "float32")])
         call owner%call("read_on", [torch_in(1)], [torch_out(v)])
         call expect(all(v == 2*u + 1), "its results are written on GPU 1 as well")
         address = array_on(1, owner)
      end do

      call expect(current_context() == before, "the context of the program is current, as it was")
      !$acc parallel loop copy(x)
      do i = 1, n
         x(i) = 2*x(i)
      end do
      call expect(sum(x) == n*(n + 1), "a region after all that")
   end subroutine memory_of_another_gpu

   !> Modules on two GPUs take turns
   subroutine alternately(x, y)
      real(real32), intent(inout) :: x(n), y(n)

      type(torch_pymodule) :: on_0, on_1, line_0, line_1
      type(c_ptr) :: address
      real(real32) :: u(n), v(n), w(n), loss_0, loss_1
      integer(int64) :: before
      integer :: round, seen_0, seen_1

      call on_0%load(script("device.py"), device="cuda:0")
      call on_1%load(script("device.py"), device="cuda:1")
      call line_0%load(script("line.py"), device="cuda:0")
      call line_1%load(script("line.py"), device="cuda:1")
      address = array_on(1, on_1)
      x = 0
      y = 0
      !$acc enter data copyin(x, y)
      before = current_context()
      do round = 1, 20
         call random_number(u)
         call on_0%forward([torch_in(u)], [torch_out(v)])
         call on_1%forward([torch_in(u)], [torch_out(w)])
         call expect(all(v == 2*u + 1) .and. all(w == v), "arrays of the host on both GPUs")
         call on_0%call("index", [torch_in(u)], [torch_out(seen_0)])
         call on_1%call("index", [torch_in(u)], [torch_out(seen_1)])
         call expect(seen_0 == 0 .and. seen_1 == 1, "each on its own")

         !$acc parallel loop present(x)
         do i = 1, n
            x(i) = i*round
         end do
         !$acc host_data use_device(x, y)
         call on_0%forward([torch_in(x)], [torch_out(y)])
         !$acc end host_data
         call on_1%forward([torch_in(address, [n], "float32")], [torch_out(w)])
         !$acc update self(y)
         call expect(all(y == [(2*i*round + 1, i=1, n)]) .and. all(w == [(2*i + 1, i=1, n)]), &
            "arrays on both GPUs")

         call line_0%train_step([torch_in(u)], [torch_in(v)], loss_0)
         call line_1%train_step([torch_in(u)], [torch_in(v)], loss_1)
         call expect(loss_0 > 0 .and. abs(loss_0 - loss_1) <= 1e-5*loss_0, "training on both GPUs")
         call expect(current_context() == before, "the context of the program stays")
      end do
      !$acc exit data delete(x, y)
   end subroutine alternately
end program several_gpus
