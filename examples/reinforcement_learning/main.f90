! SPDX-License-Identifier: MIT
!> An agent in Python learns to balance poles that fall in Fortran.
!>
!>     reinforcement_learning <agent.py> ["updates=100 seed=0 least=450 output='folder'"]
program reinforcement_learning
   use, intrinsic :: iso_c_binding, only : c_bool
   use, intrinsic :: iso_fortran_env, only : int32, int64, real32, real64
   use ftn_pytorch
   use cart_poles
   implicit none

   !> Carts that learn together, and episodes of a test
   integer, parameter :: n = 16, episodes = 10
   type(torch_pymodule) :: agent
   type(carts) :: learning
   character(4096) :: script, log
   integer :: updates, seed, steps
   real(real64) :: least, mean_return, seconds

   call read_arguments()
   call begin_random_numbers()
   call agent%load(trim(script), config=[torch_in("seed", seed), torch_in("updates", updates), &
      torch_in("log", trim(log))])
   print "(a, f6.1, a, i0, a)", "before learning:", tested(), " steps, the mean of ", episodes, " episodes"
   learning = carts(n)
   call learn()
   mean_return = tested()
   print "(a, f6.1, a, i0, a, f0.1, a)", "after learning: ", mean_return, " steps; it has seen ", n*steps, " in ", &
      seconds, " s"
   if (mean_return > least) then
      print "(a, f0.1, a)", "PASSED: poles are balanced for more than ", least, " steps"
   else
      print "(a, f0.1, a)", "FAILED: poles are balanced for no more than ", least, " steps"
      error stop 1
   end if

contains

   !> Act, see what comes of it, and tell the agent, until it has learnt
   subroutine learn()
      real(real32) :: before(4, n), next(4, n), reward(n), loss
      integer(int32) :: action(n)
      logical(c_bool) :: terminated(n), truncated(n)
      logical :: is_completed
      integer(int64) :: start, now, rate

      call system_clock(start, rate)
      is_completed = .false.
      steps = 0
      do while (.not. is_completed)
         before = learning%state
         call agent%call("act", [torch_in(before)], [torch_out(action)])
         call learning%advance(action, next, reward, terminated, truncated)
         is_completed = agent%train([torch_in(before), torch_in(action)], &
            [torch_in(reward), torch_in(next), torch_in(terminated), torch_in(truncated)], loss)
         steps = steps + 1
      end do
      call system_clock(now)
      seconds = real(now - start, real64)/real(rate, real64)
   end subroutine learn

   !> Mean number of steps of new episodes in which the agent takes the actions that it thinks best
   function tested() result(mean)
      real(real64) :: mean

      type(carts) :: test
      real(real32) :: next(4, episodes), reward(episodes), returns(episodes)
      integer(int32) :: action(episodes)
      logical(c_bool) :: terminated(episodes), truncated(episodes)
      logical :: is_over(episodes)

      test = carts(episodes)
      returns = 0
      is_over = .false.
      do while (.not. all(is_over))
         call agent%forward([torch_in(test%state)], [torch_out(action)])
         call test%advance(action, next, reward, terminated, truncated)
         where (.not. is_over) returns = returns + reward
         is_over = is_over .or. terminated .or. truncated
      end do
      mean = sum(real(returns, real64))/episodes
   end function tested

   !> The same for a seed, in each run
   subroutine begin_random_numbers()
      integer, allocatable :: state(:)
      integer :: i, length

      call random_seed(size=length)
      state = [(1009*seed + 37*i, i = 1, length)]
      call random_seed(put=state)
   end subroutine begin_random_numbers

   !> The script, and what is other than here, as a namelist
   subroutine read_arguments()
      character(4096) :: words, output
      character(256) :: reason
      integer :: stat
      namelist /options/ updates, seed, least, output

      updates = 100
      seed = 0
      least = 450
      output = ""
      call get_command_argument(1, script)
      if (script == "") error stop "reinforcement_learning: name the script, such as agent.py"
      call get_command_argument(2, words)
      words = "&options "//trim(words)//" /"
      read (words, nml=options, iostat=stat, iomsg=reason)
      if (stat /= 0) error stop "reinforcement_learning: "//trim(reason)
      log = ""
      if (output /= "") log = trim(output)//"/log.csv"
   end subroutine read_arguments
end program reinforcement_learning
