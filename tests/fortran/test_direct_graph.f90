! SPDX-License-Identifier: MIT
!> Gradients through saved models, and their parameters: without Python, and with it.
!>
!> Through Python torch.jit rewrites forward after its first calls. It differs in the last bits then, ignores
!> torch.no_grad(), looks at no version of its inputs, and may fail in inference mode.
program test_direct_graph
   use, intrinsic :: iso_fortran_env, only : real32, real64
   use check, only : expect, expect_status, expect_text, finish, is_mapped
   use ftn_pytorch
   implicit none

   character(:), allocatable :: backend
   real(real32), target :: u(16, 32), v(4, 32)

   backend = merge("direct", "python", argument_is("direct"))
   call random_init(repeatable=.true., image_distinct=.true.)
   call random_number(u)
   call random_number(v)
   call gradients_of_inputs()
   call derivatives()
   call parameters_are_the_model()
   call trained_from_fortran()
   call optimizer_of_the_model()
   call graphs_that_are_not_wanted()
   call what_a_graph_holds()
   call layouts()
   call refuses()
   if (.not. argument_is("beside")) call expect(.not. is_mapped("libpython"), "nothing of Python is in the process")
   call finish()

contains

   logical function argument_is(wanted)
      character(*), intent(in) :: wanted

      character(32) :: given
      integer :: i

      argument_is = .false.
      do i = 1, command_argument_count()
         call get_command_argument(i, given)
         argument_is = argument_is .or. given == wanted
      end do
   end function argument_is

   subroutine load(model, name, layout)
      type(torch_module), intent(inout) :: model
      character(*), intent(in) :: name
      character(*), intent(in), optional :: layout

      call model%load("direct_" // name // ".pt", backend=backend, layout=layout)
   end subroutine load

   !> Gradients of a sum, which are the adjoint of ones
   subroutine gradients_of_inputs()
      type(torch_module) :: model
      type(torch_scope) :: scope
      type(torch_tensor) :: x, y, loss, gradient
      real(real32), target :: found(16, 32), wanted(16, 32), ones(4, 32)

      call load(model, "mlp")
      call scope%begin()
      call x%from_array(u)
      call x%set_requires_grad()
      call model%forward([x%arg()], y)
      call expect(y%requires_grad(), "the result belongs to the graph")
      loss = torch_sum(y)
      call loss%backward()
      call x%grad(gradient)
      call gradient%copy_to(torch_out(found))
      call scope%end()
      ones = 1
      call model%adjoint("ftn_pytorch_forward", [torch_in(u)], [torch_in(ones)], [torch_out(wanted)])
      call expect(any(wanted /= 0), "there is a gradient")
      call expect(all(same(real(found, real64), real(wanted, real64))), "a gradient is the adjoint")
   end subroutine gradients_of_inputs

   !> Against each other and against differences
   subroutine derivatives()
      type(torch_module) :: model
      real(real64), target :: x(3, 4), dx(3, 4), y(3, 4), dy(3, 4), ax(3, 4), matrix(3, 4, 3, 4)
      real(real32), target :: du(16, 32), dv(4, 32), av(16, 32), tv(4, 32)
      integer :: i, j

      call random_number(x)
      call random_number(dx)
      call random_number(dy)
      call load(model, "weighted")
      call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(dx)], [torch_out(y)])
      call model%adjoint("ftn_pytorch_forward", [torch_in(x)], [torch_in(dy)], [torch_out(ax)])
      do i = 1, 3
         call expect(all(y(i, :) == i*dx(i, :)) .and. all(ax(i, :) == i*dy(i, :)), "a diagonal matrix")
      end do
      call model%jacobian("ftn_pytorch_forward", [torch_in(x)], [torch_out(matrix)])
      do i = 1, 3
         do j = 1, 4
            call expect(matrix(i, j, i, j) == i .and. count(matrix(:, :, i, j) /= 0) == 1, "its Jacobian")
         end do
      end do
      call load(model, "mlp")
      call random_number(du)
      call random_number(dv)
      call model%tangent("ftn_pytorch_forward", [torch_in(u)], [torch_in(du)], [torch_out(tv)])
      call model%adjoint("ftn_pytorch_forward", [torch_in(u)], [torch_in(dv)], [torch_out(av)])
      call expect(abs(sum(tv*dv) - sum(du*av)) < 1e-5*sum(abs(tv*dv)), "tangent and adjoint of a network")
   end subroutine derivatives

   !> What is changed outside is seen by predictions, frozen or not
   subroutine parameters_are_the_model()
      type(torch_module) :: model
      type(torch_results) :: parameters
      type(torch_tensor) :: weight, bias
      real(real32), target :: before(4, 32), after(4, 32), zeros(64, 4), five(4)
      real(real32), pointer :: w(:, :)
      integer :: i

      call load(model, "mlp")
      call model%forward([torch_in(u)], [torch_out(before)])
      call model%parameters(parameters)
      call expect(parameters%count() == 6, "parameters of three layers")
      call parameters%get("4.weight", weight)
      call parameters%get(6, bias)
      call expect(all(weight%shape() == [64, 4]), "Fortran order of axes")
      call expect(weight%requires_grad(), "it can be trained")
      call weight%to_array(w)
      call expect(any(w /= 0), "memory of the parameter")
      zeros = 0
      five = 5
      do i = 1, 2
         call no_grad_copy(weight, zeros)
         call torch_call("Tensor.fill_", [bias_data(bias), torch_in(5.0*i)])
         call model%forward([torch_in(u)], [torch_out(after)])
         call expect(all(after == five(1)*i), "a prediction uses what was written")
         call predict_often(model)
      end do
      call expect(any(before /= after), "and it was another one")
      call parameters%free()
   end subroutine parameters_are_the_model

   subroutine no_grad_copy(tensor, values)
      type(torch_tensor), intent(inout) :: tensor
      real(real32), target, intent(in) :: values(:, :)

      type(torch_scope) :: scope

      call scope%begin()
      call scope%no_grad()
      call tensor%copy_from(torch_in(values))
      call scope%end()
   end subroutine no_grad_copy

   !> A view of a parameter without a graph
   function bias_data(tensor) result(arg)
      type(torch_tensor), intent(in) :: tensor
      type(torch_arg) :: arg

      type(torch_tensor), save :: view

      call torch_call("Tensor.detach", [tensor%arg()], view)
      arg = view%arg()
   end function bias_data

   !> So often that a model is frozen again
   subroutine predict_often(model)
      type(torch_module), intent(inout) :: model

      real(real32), target :: y(4, 32)
      integer :: i

      do i = 1, 60
         call model%forward([torch_in(u)], [torch_out(y)])
      end do
   end subroutine predict_often

   !> A loop of the program does what train does, to the last bit
   subroutine trained_from_fortran()
      type(torch_module) :: model, own
      type(torch_results) :: parameters
      type(torch_optimizer) :: optimizer
      type(torch_tensor) :: weights(6), x, t
      real(real32), target :: prediction(4, 32), theirs(4, 32)
      real(real64) :: value, wanted
      integer :: step, i

      call load(own, "mlp_eval")
      call own%create_optimizer_adam(1d-2)
      call load(model, "mlp_eval")
      call model%parameters(parameters)
      do i = 1, 6
         call parameters%get(i, weights(i))
      end do
      call optimizer%create("Adam", weights, [torch_in("lr", 1d-2)])
      call x%from_array(u)
      call t%from_array(v)
      do step = 1, 20
         call train_step(model, optimizer, x, t, value)
         call own%train([torch_in(u)], [torch_in(v)], wanted)
         call expect(same(value, wanted), "the loss is that of train")
      end do
      call model%forward([torch_in(u)], [torch_out(prediction)])
      call own%forward([torch_in(u)], [torch_out(theirs)])
      call expect(maxval(abs(prediction - theirs)) < 1e-4, "and so are the predictions")
   end subroutine trained_from_fortran

   !> One step of a loop of the program, and the loss before it
   subroutine train_step(model, optimizer, x, t, value)
      type(torch_module), intent(in) :: model
      type(torch_optimizer), intent(in) :: optimizer
      type(torch_tensor), intent(in) :: x, t
      real(real64), intent(out) :: value

      type(torch_scope) :: scope
      type(torch_tensor) :: y, loss

      call scope%begin()
      call optimizer%zero_grad()
      call model%forward([x%arg()], y)
      loss = torch_mse_loss(y, t)
      call loss%backward()
      call optimizer%step()
      call loss%item(value)
      call scope%end()
   end subroutine train_step

   !> To the last bit where nothing is rewritten
   elemental logical function same(a, b)
      real(real64), intent(in) :: a, b

      same = a == b .or. (backend == "python" .and. abs(a - b) < 1e-6 + 1e-4*abs(b))
   end function same

   subroutine optimizer_of_the_model()
      type(torch_module) :: model
      type(torch_optimizer) :: optimizer
      type(torch_tensor) :: x, t
      real(real64) :: first, last
      integer :: step, stat
      character(:), allocatable :: errmsg

      call load(model, "mlp")
      call optimizer%create("AdamW", model, [torch_in("lr", 1d-2)])
      call x%from_array(u)
      call t%from_array(v)
      do step = 1, 50
         call train_step(model, optimizer, x, t, last)
         if (step == 1) first = last
      end do
      call expect(last < 0.7d0*first, "it learns")
      call load(model, "weighted")
      call optimizer%create("SGD", model, [torch_in("lr", 1d-2)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "no parameters", errmsg, "nothing to train")
   end subroutine optimizer_of_the_model

   subroutine graphs_that_are_not_wanted()
      type(torch_module) :: model
      type(torch_results) :: parameters
      type(torch_scope) :: scope
      type(torch_tensor) :: x, y
      real(real32), target :: found(4, 32), wanted(4, 32)

      call load(model, "mlp")
      call model%forward([torch_in(u)], [torch_out(wanted)])
      call x%from_array(u)
      call x%set_requires_grad()
      call model%forward([x%arg()], [torch_out(found)])
      call expect(all(abs(found - wanted) < 1e-6), "arrays get the values alone")
      call scope%begin()
      call scope%no_grad()
      call model%forward([x%arg()], y)
      ! torch.jit goes on with a graph once it has made one
      if (backend == "direct") call expect(.not. y%requires_grad(), "no graph in a scope without gradients")
      call model%parameters(parameters)
      call model%forward([torch_in(u)], y)
      if (backend == "direct") call expect(.not. y%requires_grad(), "nor of the parameters")
      call scope%end()
      call model%forward([torch_in(u)], y)
      call expect(y%requires_grad(), "the graph of the parameters alone")
      call y%copy_to(torch_out(found))
      call expect(all(abs(found - wanted) < 1e-6), "its values")
      if (backend == "python") return
      call model%forward([torch_in(u)], parameters, torch_use_inference_mode)
      call parameters%get(1, y)
      call expect(.not. y%requires_grad(), "inference mode keeps the parameters out")
      call model%forward([x%arg()], parameters, torch_use_inference_mode)
      call parameters%get(1, y)
      call expect(y%requires_grad(), "but not an input that requires gradients")
   end subroutine graphs_that_are_not_wanted

   !> Inputs that were freed, and inputs that were changed
   subroutine what_a_graph_holds()
      type(torch_module) :: model
      type(torch_results) :: parameters
      type(torch_tensor) :: x, y, loss, weight, gradient
      real(real32), target :: found(16, 64), wanted(16, 64), held(16, 32)
      integer :: stat, i
      character(:), allocatable :: errmsg

      call load(model, "mlp")
      call model%parameters(parameters)
      call parameters%get(1, weight)
      call weight%grad(gradient)
      do i = 1, 2
         call x%from_array(torch_copy(u))
         call model%forward([x%arg()], y)
         if (i == 2) then
            call x%free()
            call x%zeros([16, 32])  ! may be given the same memory
         end if
         loss = torch_sum(y)
         call loss%backward()
         if (i == 1) call gradient%copy_to(torch_out(wanted))
         if (i == 2) call gradient%copy_to(torch_out(found))
         call weight%zero_grad()
      end do
      call expect(all(same(real(found, real64), real(wanted, real64))), "a graph keeps its input")
      if (backend == "python") return  ! whose graph looks into arrays of the program
      held = u
      do i = 1, 2
         if (i == 1) call model%forward([torch_in(held)], y)
         if (i == 2) call model%forward([torch_copy(u)], y)
         held = 100
         loss = torch_sum(y)
         call loss%backward()
         call gradient%copy_to(torch_out(found))
         call expect(all(same(real(found, real64), real(wanted, real64))), "and copies of arrays and of copies")
         call weight%zero_grad()
      end do
      call x%from_array(torch_copy(u))
      call model%forward([x%arg()], y)
      call torch_call("Tensor.zero_", [x%arg()])
      loss = torch_sum(y)
      call loss%backward(stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_PYTHON, "a changed input", errmsg, "modified by an inplace operation")
   end subroutine what_a_graph_holds

   !> The axes of a tensor are those that it was made with
   subroutine layouts()
      type(torch_module) :: model
      type(torch_tensor) :: x, y, loss, gradient
      real(real64), target :: a(3, 2), turned(2, 3), found(3, 2), found_turned(2, 3)
      integer :: i

      a = reshape([(real(i, real64), i=1, 6)], [3, 2])
      call load(model, "weighted")
      call x%from_array(a)
      call x%set_requires_grad()
      call model%forward([x%arg()], y)
      loss = torch_sum(y)
      call loss%backward()
      call x%grad(gradient)
      call gradient%copy_to(torch_out(found))
      call expect(all(found == spread([1d0, 2d0, 3d0], 2, 2)), "reversed axes")
      call load(model, "weighted", layout="same")
      turned = transpose(a)
      call x%from_array(torch_in(turned), layout="same")
      call x%set_requires_grad()
      call model%forward([x%arg()], y)
      call expect(all(y%shape() == [2, 3]), "shape of the result")
      loss = torch_sum(y)
      call loss%backward()
      call x%grad(gradient)
      call gradient%copy_to(torch_out(found_turned))
      call expect(all(found_turned == spread([1d0, 2d0, 3d0], 1, 2)), "axes in the order of Fortran")
   end subroutine layouts

   subroutine refuses()
      type(torch_module) :: model
      real(real64), target :: x(3, 2), y(3, 2), d(3, 1)
      integer :: stat
      character(:), allocatable :: errmsg

      x = 1
      d = 1
      call load(model, "weighted")
      call model%adjoint("ftn_pytorch_forward", [torch_in(x)], [torch_in(d)], [torch_out(y)], stat=stat, errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_SHAPE, "a gradient of another shape", errmsg)
      call expect_text(errmsg, "gradient 1 is float64 (1, 3), Fortran (3, 1)", "a gradient of another shape")
      call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in(x), torch_in(x)], [torch_out(y)], stat=stat, &
         errmsg=errmsg)
      call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "two directions for one input", errmsg)
      if (backend == "direct") then
         call model%tangent("ftn_pytorch_forward", [torch_in(x)], [torch_in("x", x)], [torch_out(y)], stat=stat)
         call expect_status(stat, FTN_PYTORCH_ERR_ARGUMENT, "a direction with a name")
      end if
      call expect_text(errmsg, "2 tangents were given, but ftn_pytorch_forward has 1 real or complex inputs", "two")
   end subroutine refuses
end program test_direct_graph
