! SPDX-License-Identifier: MIT
!> What may stand in for the fast variables: the interface of a closure, and the classical one, a polynomial fit.
module closures
   use lorenz96, only: dp, stencil, gather_stencils
   implicit none
   private

   public :: closure, closure_pointer, polynomial_closure

   !> Anything that gives the sub-grid tendency of every slow variable of every member of an ensemble
   type, abstract :: closure
      character(len=32) :: name = ""
   contains
      procedure(evaluate_interface), deferred :: evaluate
   end type closure

   type :: closure_pointer
      class(closure), pointer :: p => null()
   end type closure_pointer

   abstract interface
      subroutine evaluate_interface(self, x, tendency)
         import :: closure, dp
         implicit none
         class(closure), intent(inout) :: self
         !> Slow variables, (nslow, members)
         real(dp), intent(in) :: x(:, :)
         !> Of the shape of x
         real(dp), intent(out) :: tendency(:, :)
      end subroutine evaluate_interface
   end interface

   !> Least squares on all monomials up to a degree, of X(k) alone as in Wilks (2005) or of the whole stencil
   type, extends(closure) :: polynomial_closure
      private
      !> Term i is term parent(i) times input factor(i); the first term is one
      integer, allocatable :: parent(:), factor(:)
      real(dp), allocatable :: gram(:, :), moment(:), coefficient(:)
   contains
      procedure :: create
      procedure :: learn
      procedure :: solve
      procedure :: evaluate => evaluate_polynomial
   end type polynomial_closure

   !> Inputs are shifted and scaled to order one, else powers of different degree make the fit ill-conditioned
   real(dp), parameter :: shift = 4, scale = 5

   !> Columns that are worked on at a time: their monomials fit into the cache
   integer, parameter :: chunk = 128

contains

   subroutine create(self, name, inputs, degree)
      class(polynomial_closure), intent(inout) :: self
      character(len=*), intent(in) :: name
      !> Those of the stencil to be used, such as [3] or [1, 2, 3, 4, 5]
      integer, intent(in) :: inputs(:)
      integer, intent(in) :: degree

      integer, allocatable :: last(:)
      integer :: d, i, j, first, n

      self%name = name
      self%parent = [integer :: 0]
      self%factor = [integer :: 0]
      ! last(i): position in `inputs` of the last factor of term i. Only factors from there on are appended, so that
      ! each monomial comes up once
      allocate (last(1), source=1)
      first = 1
      do d = 1, degree
         n = size(last)
         do i = first, n
            do j = last(i), size(inputs)
               self%parent = [self%parent, i]
               self%factor = [self%factor, inputs(j)]
               last = [last, j]
            end do
         end do
         first = n + 1
      end do

      n = size(last)
      allocate (self%gram(n, n), self%moment(n), self%coefficient(n), source=0.0_dp)
   end subroutine create

   !> Add samples to the normal equations; the fit is online too and keeps none of them
   subroutine learn(self, columns, tendency)
      class(polynomial_closure), intent(inout) :: self
      !> (stencil, n) and (n)
      real(dp), intent(in) :: columns(:, :), tendency(:)

      real(dp) :: phi(size(tendency), size(self%parent))

      call monomials(self, columns, phi)
      self%gram = self%gram + matmul(transpose(phi), phi)
      self%moment = self%moment + matmul(tendency, phi)
   end subroutine learn

   !> Solve the normal equations by Cholesky factorisation
   subroutine solve(self)
      class(polynomial_closure), intent(inout) :: self

      real(dp) :: l(size(self%moment), size(self%moment))
      integer :: i, n

      n = size(self%moment)
      l = self%gram
      do i = 1, n
         l(i, i) = sqrt(l(i, i) - sum(l(i, :i - 1)**2))
         l(i + 1:, i) = (l(i + 1:, i) - matmul(l(i + 1:, :i - 1), l(i, :i - 1)))/l(i, i)
      end do
      associate (c => self%coefficient)
         c = self%moment
         do i = 1, n
            c(i) = (c(i) - dot_product(l(i, :i - 1), c(:i - 1)))/l(i, i)
         end do
         do i = n, 1, -1
            c(i) = (c(i) - dot_product(l(i + 1:, i), c(i + 1:)))/l(i, i)
         end do
      end associate
   end subroutine solve

   subroutine evaluate_polynomial(self, x, tendency)
      class(polynomial_closure), intent(inout) :: self
      real(dp), intent(in) :: x(:, :)
      real(dp), intent(out) :: tendency(:, :)

      ! Allocatable: x may be large, and some compilers put automatic arrays on the stack
      real(dp), allocatable :: columns(:, :), flat(:)
      real(dp) :: phi(chunk, size(self%parent))
      integer :: first, n

      allocate (columns(stencil, size(x)), flat(size(x)))
      call gather_stencils(x, columns)
      do first = 1, size(flat), chunk
         n = min(chunk, size(flat) - first + 1)
         call monomials(self, columns(:, first:first + n - 1), phi(:n, :))
         flat(first:first + n - 1) = matmul(phi(:n, :), self%coefficient)
      end do
      tendency = reshape(flat, shape(tendency))
   end subroutine evaluate_polynomial

   pure subroutine monomials(self, columns, phi)
      type(polynomial_closure), intent(in) :: self
      real(dp), intent(in) :: columns(:, :)
      !> (n, terms)
      real(dp), intent(out) :: phi(:, :)

      integer :: i

      phi(:, 1) = 1
      do i = 2, size(phi, 2)
         phi(:, i) = phi(:, self%parent(i))*((columns(self%factor(i), :) - shift)/scale)
      end do
   end subroutine monomials

end module closures
