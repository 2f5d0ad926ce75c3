! SPDX-License-Identifier: MIT
!> Numbers in memory of several forms, tensors of them, and a line for each expression of these tensors: "form | theme |
!> name | status | type, shape and values | gradients of the tensors", in the file "seen" of the working directory.
!>
!> Numbers are written with all their digits, so that lines can be compared bit for bit, and differences be seen.
module leaves
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use ftn_pytorch
   implicit none
   private

   public :: ap, ax, ay
   public :: x, y, s, z, k, m, v, p
   public :: forms, form, order, theme, begin, finish, of, refused, note, renew, axis, make

   integer, parameter :: extents(2) = [3, 5]
   real(real64), parameter :: untouched = -77
   character(9), parameter :: forms(4) = [character(9) :: "dense", "section", "backwards", "same"]
   !> Form of all memory now, and the order of the axes of its tensors
   character(9), save :: form = ""
   character(8), save :: order = ""
   character(20), save :: theme = ""
   !> Memory of the form, from which sections are taken, and the sections
   real(real64), allocatable, target, save :: hp(:, :), hx(:, :), hy(:, :), hv(:)
   real(real32), allocatable, target, save :: hs(:, :)
   complex(real32), allocatable, target, save :: hz(:, :)
   integer(int32), allocatable, target, save :: hk(:, :)
   logical(c_bool), allocatable, target, save :: hm(:, :)
   real(real64), pointer, save :: ap(:, :), ax(:, :), ay(:, :), av(:)
   real(real32), pointer, save :: as(:, :)
   complex(real32), pointer, save :: az(:, :)
   integer(int32), pointer, save :: ak(:, :)
   logical(c_bool), pointer, save :: am(:, :)
   !> Tensors of these sections: x, y, s, z and v want gradients. p has the values of x and wants none
   type(torch_tensor), save :: x, y, s, z, k, m, v, p
   type(torch_scope), save :: scope
   integer, save :: unit = 0

contains

   !> All in one form from now on
   subroutine begin(wanted)
      !> One of forms
      character(*), intent(in) :: wanted

      if (unit == 0) then
         open (newunit=unit, file="seen", action="write")
         call scope%begin()
      end if
      form = wanted
      order = merge("same    ", "reversed", form == "same")
      call renew()
   end subroutine begin

   subroutine finish()
      call scope%end()
      close (unit)
   end subroutine finish

   !> Memory and tensors as at the beginning: what an expression left behind does not reach the next
   subroutine renew()
      integer :: i, first(2), last(2), step(2), whole(2)

      call scope%end()
      call scope%begin()
      step = steps()
      whole = abs(step)*extents
      first = merge(1, whole, step > 0)
      last = merge(whole, 1, step > 0)
      if (allocated(hx)) deallocate (hp, hx, hy, hs, hz, hk, hm, hv)
      allocate (hx(whole(1), whole(2)), hy(whole(1), whole(2)), hs(whole(1), whole(2)), hz(whole(1), whole(2)))
      allocate (hk(whole(1), whole(2)), hm(whole(1), whole(2)), hp(whole(1), whole(2)), hv(whole(2)))
      hp = untouched
      hx = untouched
      hy = untouched
      hs = real(untouched, real32)
      hz = cmplx(untouched, kind=real32)
      hk = int(untouched)
      hm = .false._c_bool
      hv = untouched
      ap => hp(first(1):last(1):step(1), first(2):last(2):step(2))
      ax => hx(first(1):last(1):step(1), first(2):last(2):step(2))
      ay => hy(first(1):last(1):step(1), first(2):last(2):step(2))
      as => hs(first(1):last(1):step(1), first(2):last(2):step(2))
      az => hz(first(1):last(1):step(1), first(2):last(2):step(2))
      ak => hk(first(1):last(1):step(1), first(2):last(2):step(2))
      am => hm(first(1):last(1):step(1), first(2):last(2):step(2))
      av => hv(first(2):last(2):step(2))
      ! Of few bits, so that sums and products are exact in each order
      ax = reshape([5, -3, 11, 2, -7, 9, -1, 14, 6, -12, 3, -10, 13, -5, 8], extents)/8d0
      ap = ax
      ay = reshape([(modulo(7*i, 16)/16d0, i=1, size(ay))], extents)
      as = reshape([(modulo(5*i, 17)/4.0 - 1.875, i=1, size(as))], extents)
      az = cmplx(real(ax, real32), as)
      ak = reshape([(modulo(11*i, 7) - 2, i=1, size(ak))], extents)
      am = ax > 0
      av = [2d0, -1d0, 0.5d0, 4d0, -0.25d0]
      call make(x, torch_in(ax), torch_copy(ax))
      call make(y, torch_in(ay), torch_copy(ay))
      call make(s, torch_in(as), torch_copy(as))
      call make(z, torch_in(az), torch_copy(az))
      call make(k, torch_in(ak), torch_copy(ak))
      call make(m, torch_in(am), torch_copy(am))
      call make(v, torch_in(av), torch_copy(av))
      call make(p, torch_in(ap), torch_copy(ap))
      call x%set_requires_grad()
      call y%set_requires_grad()
      call s%set_requires_grad()
      call z%set_requires_grad()
      call v%set_requires_grad()
   end subroutine renew

   !> Between neighbours of both axes, in elements
   pure function steps() result(found)
      integer :: found(2)

      select case (form)
      case ("section")
         found = 2
      case ("backwards")
         found = -1
      case default
         found = 1
      end select
   end function steps

   !> A tensor on an array where torch can express its strides, else of a copy
   subroutine make(tensor, array, copy)
      type(torch_tensor), intent(inout) :: tensor
      type(torch_arg), target :: array, copy

      if (form == "backwards") then
         call tensor%from_array(copy, layout=trim(order))
      else
         call tensor%from_array(array, layout=trim(order))
      end if
   end subroutine make

   !> Of torch, for an axis of a matrix of Fortran
   pure integer function axis(dim)
      !> From 1
      integer, intent(in) :: dim

      axis = merge(dim - 1, 2 - dim, order == "same")
   end function axis

   !> A line for the value of an expression and what goes back from it, and all is new for the next one
   subroutine of(name, value, stat, errmsg)
      !> The expression
      character(*), intent(in) :: name
      !> May carry a failure
      type(torch_tensor), intent(in) :: value
      !> Of the call that gave the value
      integer, intent(in), optional :: stat
      character(:), allocatable, intent(in), optional :: errmsg

      character(:), allocatable :: why, values, gradients
      type(torch_tensor) :: weights
      integer :: status
      logical :: has_graph

      if (present(stat)) then
         if (stat /= FTN_PYTORCH_OK) then
            call refused(name, stat, errmsg)
            return
         end if
      end if
      has_graph = value%requires_grad(status, why)
      if (status /= FTN_PYTORCH_OK) then
         call refused(name, status, why)
         return
      end if
      values = value%dtype() // values_of(value)
      gradients = ""
      if (has_graph) then
         call weights%arange(1_int64, product(value%shape()) + 1)
         weights = torch_to(torch_reshape(weights, value%shape()), dtype=value%dtype())
         call value%backward(weights, stat=status, errmsg=why)
         if (status /= FTN_PYTORCH_OK) then
            call refused(name, status, why)
            return
         end if
         gradients = "graph" // gradient_of("x", x) // gradient_of("y", y) // gradient_of("s", s) // &
            gradient_of("z", z) // gradient_of("v", v)
      end if
      call write_line(name, status, values, gradients)
      call renew()
   end subroutine of

   !> A line for what failed, with all that is said of it
   subroutine refused(name, stat, errmsg)
      character(*), intent(in) :: name, errmsg
      integer, intent(in) :: stat

      character(:), allocatable :: text
      integer :: i

      text = errmsg
      do i = 1, len(text)
         if (any(text(i:i) == [new_line("a"), "|"])) text(i:i) = "/"
      end do
      call write_line(name, stat, text, "")
      call renew()
   end subroutine refused

   !> A line for a matrix of the program, which is new for the next expression
   subroutine note(name, stat, numbers)
      character(*), intent(in) :: name
      integer, intent(in) :: stat
      real(real64), intent(in) :: numbers(:, :)

      character(:), allocatable :: text
      integer :: i, j

      text = "array"
      do j = 1, size(numbers, 2)
         do i = 1, size(numbers, 1)
            call append(text, numbers(i, j))
         end do
      end do
      call write_line(name, stat, text, "")
      call renew()
   end subroutine note

   subroutine write_line(name, stat, values, gradients)
      character(*), intent(in) :: name, values, gradients
      integer, intent(in) :: stat

      write (unit, "(6a, i0, 4a)") trim(form), " | ", trim(theme), " | ", name, " | ", stat, " | ", values, " | ", &
         gradients
      flush (unit)
   end subroutine write_line

   !> Nothing where none has come
   function gradient_of(name, leaf) result(text)
      character(*), intent(in) :: name
      type(torch_tensor), intent(in) :: leaf
      character(:), allocatable :: text

      type(torch_tensor) :: gradient
      integer :: rank, stat

      text = ""
      call leaf%grad(gradient)
      rank = gradient%rank(stat)
      if (stat == FTN_PYTORCH_OK) text = " " // name // ": " // gradient%dtype() // values_of(gradient)
   end function gradient_of

   !> Shape and values, which are received in memory of the form
   function values_of(tensor) result(text)
      type(torch_tensor), intent(in) :: tensor
      character(:), allocatable :: text

      complex(real64), allocatable, target :: home(:, :)
      complex(real64), pointer :: found(:, :)
      character(:), allocatable :: errmsg
      character(12) :: number
      type(torch_tensor) :: matrix
      integer :: whole(2), step(2), i, j, stat

      text = " ("
      associate (extent => tensor%shape())
         do i = 1, size(extent)
            write (number, "(i0)") extent(i)
            text = text // trim(number) // " "
         end do
         whole = 1
         whole(:min(2, size(extent))) = int(extent(:min(2, size(extent))))
         if (size(extent) > 2) whole(2) = int(product(extent(2:)))
      end associate
      text = trim(text) // ")"
      matrix = tensor
      if (tensor%rank() /= 2) matrix = torch_reshape(tensor, whole)
      step = steps()
      allocate (home(whole(1)*abs(step(1)), whole(2)*abs(step(2))))
      home = untouched
      if (form == "backwards") then
         found => home(whole(1):1:-1, whole(2):1:-1)
      else
         found => home(::step(1), ::step(2))
      end if
      if (tensor%dtype() == "bool") matrix = torch_to(matrix, dtype="int8")
      call matrix%copy_to(torch_out(found), cast=.true., stat=stat, errmsg=errmsg)
      if (stat /= FTN_PYTORCH_OK) then
         text = text // " " // errmsg
         return
      end if
      do j = 1, whole(2)
         do i = 1, whole(1)
            call append(text, real(found(i, j)))
            if (index(tensor%dtype(), "complex") == 1) call append(text, aimag(found(i, j)))
         end do
      end do
      found = untouched
      if (any(home /= untouched)) text = text // " written beside the section"
   end function values_of

   subroutine append(text, number)
      character(:), allocatable, intent(inout) :: text
      real(real64), intent(in) :: number

      character(26) :: digits

      write (digits, "(es25.16e3)") number
      text = text // " " // trim(adjustl(digits))
   end subroutine append
end module leaves
