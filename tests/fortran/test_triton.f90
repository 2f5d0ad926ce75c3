! SPDX-License-Identifier: MIT
!> Models in a server: without one, and with the stand-in of the Python tests, whose address is the argument
program test_triton
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check
   use ftn_pytorch
   implicit none
   type(torch_module) :: model
   character(:), allocatable :: errmsg
   character(1024) :: server
   integer :: stat

   call random_init(repeatable=.true., image_distinct=.true.)
   if (command_argument_count() == 0) then
      call without_a_server()
   else
      call get_command_argument(1, server)
      call answers()
      call names()
      call batches()
      call mistakes()
   end if
   call finish()

contains

   subroutine without_a_server()
      character(*), parameter :: nobody = "triton+grpc://127.0.0.1:9/net?timeout=60&retries=0"
      type(torch_module) :: plain
      real(real32) :: x(1, 5), y(1, 5), expected(1, 5)

      call model%load(nobody, stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "nobody listens", errmsg, "no Triton server that can be reached")
      call model%load("triton+grpc://127.0.0.1/net", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no port", errmsg)
      call model%load(nobody, backend="direct", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "a server on the direct path", errmsg)
      call model%load(nobody, fallback="missing.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "no file to fall back to", errmsg)
      call model%load(nobody, fallback="", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "an empty name", errmsg)
      call model%load("polynomial.pt", fallback="polynomial.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a file with another one", errmsg)
      call model%load("polynomial.pt", backend="python", fallback="polynomial.pt", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "the same through Python", errmsg)

      call random_number(x)
      call plain%load("polynomial.pt")
      call plain%forward([torch_in(x)], [torch_out(expected)])
      call model%load(nobody, fallback="polynomial.pt")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(abs(y - expected) <= 1e-6_real32*abs(expected)), "the file answers")
      call expect(model%backend() == "triton", "what runs it")
   end subroutine without_a_server

   subroutine answers()
      real(real32) :: x(3, 6), y(1, 6)
      real(real64) :: wide(3, 6), sums(1, 6)
      integer :: i

      call model%load(trim(server)//"net")
      do i = 1, 50
         call random_number(x)
         call model%forward([torch_in(x)], [torch_out(y)])
         call expect(all(abs(y(1, :) - sum(tanh(x), dim=1)) < 1e-6_real32), "an answer")
      end do
      call model%load(trim(server)//"net", dtype="float32")
      wide = x
      call model%forward([torch_in("x", wide)], [torch_out(sums)])
      call expect(all(real(sums, real32) == y), "double precision on both sides")
   end subroutine answers

   subroutine names()
      real(real32) :: a(4), b(4), total(4), difference(4)

      call random_number(a)
      call random_number(b)
      call model%load(trim(server)//"two")
      call model%forward([torch_in("b", b), torch_in("a", a)], &
         [torch_out("difference", difference), torch_out("total", total)])
      call expect(all(total == a + b) .and. all(difference == a - b), "inputs and outputs by name")
      call model%forward([torch_in(a), torch_in(b)], [torch_out(total), torch_out(difference)])
      call expect(all(total == a + b) .and. all(difference == a - b), "by position")
   end subroutine names

   subroutine batches()
      real(real32) :: x(3, 11), y(1, 11)

      call random_number(x)
      call model%load(trim(server)//"batches")
      call model%forward([torch_in(x)], [torch_out(y)])
      call expect(all(abs(y(1, :) - sum(tanh(x), dim=1)) < 1e-6_real32), "more samples than the model takes at once")
   end subroutine batches

   subroutine mistakes()
      real(real32) :: x(2, 6), y(1, 6)

      x = 0
      call model%load(trim(server)//"other", stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_FILE, "a model that is not there", errmsg)
      call model%load(trim(server)//"net")
      call model%forward([torch_in(x)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "two features in place of three", errmsg)
   end subroutine mistakes

end program test_triton
