! SPDX-License-Identifier: MIT
!> What a user writes: the options of the namelist, and the lines that ftn_pytorch_comin() of the script returns.
!>
!>    "add NAME [tracer] [2d] [restart] [units=TEXT] ..."    a new field of ICON, in all domains, with its metadata
!>    "ENTRY_POINT FUNCTION read1 read2 > write1 ..."        call FUNCTION of the script there
!>
!> A field that is read and written stands on both sides. NAME@device is the field in the memory of ICON's GPU.
module comin_lines
   use comin_plugin_interface, only : comin_callback_get_ep_name, EP_DESTRUCTOR, EP_FINISH, EP_SECONDARY_CONSTRUCTOR
   implicit none
   private

   public :: hook, line_of, number_keys, read_line, read_options, script_options

   !> Longest word of a line, and name of a field
   integer, parameter :: word_length = 128

   !> Metadata of ComIn that a line may give to a new field: words, KEY=INTEGER and KEY=TEXT. What ICON makes of them is
   !> in ComIn's documentation
   character(*), parameter :: flag_keys(*) = [character(13) :: "tracer", "tracer_turb", "tracer_conv", "restart"], &
      number_keys(*) = [character(13) :: "tracer_hlimit", "tracer_vlimit", "tracer_hadv", "tracer_vadv"], &
      text_keys(*) = [character(13) :: "units", "standard_name", "long_name", "short_name"]

   !> A function and where it is called
   type :: hook
      integer :: entry_point = 0
      character(:), allocatable :: function
      character(word_length), allocatable :: reads(:), writes(:)
   end type hook

   !> A line that was understood
   type :: line_of
      !> False: it has a hook
      logical :: adds = .false.
      character(:), allocatable :: name
      !> Of a new field: 2d, which is without levels, and words, KEY=INTEGER and KEY=TEXT
      character(word_length), allocatable :: metadata(:)
      type(hook) :: hook
   end type line_of

   !> plugin_list(i)%options
   type :: script_options
      character(:), allocatable :: script
      !> With %r for the rank; not allocated: none are written
      character(:), allocatable :: checkpoints
      !> As of load; not allocated: as without
      character(:), allocatable :: dtype, device
      !> Threads of the script run between its calls, too
      logical :: threads = .false.
      !> What follows "--", for the script
      character(:), allocatable :: rest
   end type script_options

contains

   !> Read "SCRIPT [checkpoints=FOLDER] [dtype=float32] [device=cuda] [threads] [-- anything]"
   subroutine read_options(text, options, errmsg)
      !> As the namelist has it
      character(*), intent(in) :: text
      !> Receives what it says
      type(script_options), intent(out) :: options
      !> Allocated if it cannot be read: why
      character(:), allocatable, intent(out) :: errmsg

      character(word_length*4), allocatable :: words(:)
      character(:), allocatable :: word
      integer :: i, cut

      cut = index(text // " ", " -- ")
      if (cut == 0) cut = len(text) + 1
      options%rest = trim(adjustl(text(min(cut + 4, len(text) + 1):)))
      words = split(text(:cut - 1), word_length*4)
      if (size(words) == 0) then
         errmsg = "options must name a script: plugin_list(i)%options = ""closure.py"""
         return
      end if
      options%script = trim(words(1))
      do i = 2, size(words)
         word = trim(words(i))
         if (index(word, "checkpoints=") == 1) then
            options%checkpoints = word(13:)
            if (index(word, "%r") == 0) options%checkpoints = options%checkpoints // "/rank%r"
         else if (index(word, "dtype=") == 1) then
            options%dtype = word(7:)
         else if (index(word, "device=") == 1) then
            options%device = word(8:)
         else if (word == "threads") then
            options%threads = .true.
         else
            errmsg = "options has the word """ // word // """. Valid are checkpoints=FOLDER, dtype=, device= and " &
               // "threads; what is for the script stands after "" -- """
            return
         end if
      end do
   end subroutine read_options

   !> Read one line of the script
   subroutine read_line(text, line, errmsg)
      !> The line
      character(*), intent(in) :: text
      !> Receives what it says
      type(line_of), intent(out) :: line
      !> Allocated if it cannot be read: why
      character(:), allocatable, intent(out) :: errmsg

      character(word_length), allocatable :: words(:)
      integer :: arrow, i

      words = split(text, word_length)
      if (size(words) < 2) then
         errmsg = "write ""add NAME"" or ""ENTRY_POINT FUNCTION field > field"""
      else if (words(1) == "add") then
         line%adds = .true.
         line%name = trim(words(2))
         line%metadata = words(3:)
         do i = 1, size(line%metadata)
            if (.not. is_metadata(trim(line%metadata(i)))) then
               errmsg = "the word """ // trim(line%metadata(i)) // """: valid are 2d, " // list(flag_keys, ", ") &
                  // list(number_keys, "=NUMBER, ") // list(text_keys, "=TEXT, ")
               errmsg = errmsg(:len(errmsg) - 2)
               return
            end if
         end do
      else
         line%hook%entry_point = entry_point(trim(words(1)))
         if (line%hook%entry_point == 0) then
            errmsg = "this ComIn has no entry point " // trim(words(1)) // " in its run"
            return
         end if
         line%hook%function = trim(words(2))
         arrow = findloc(words, ">", dim=1)
         if (count(words == ">") > 1) errmsg = "there are two signs >"
         if (arrow == 0) arrow = size(words) + 1
         line%hook%reads = words(3:arrow - 1)
         line%hook%writes = words(arrow + 1:)
      end if
   end subroutine read_line

   function is_metadata(word) result(is)
      character(*), intent(in) :: word
      logical :: is

      integer :: cut, number, stat

      cut = index(word, "=")
      if (cut == 0) then
         is = word == "2d" .or. any(flag_keys == word)
         return
      end if
      is = any(text_keys == word(:cut - 1))
      if (.not. any(number_keys == word(:cut - 1))) return
      read (word(cut + 1:), *, iostat=stat) number
      is = stat == 0
   end function is_metadata

   !> Words with an end behind each of them
   function list(words, end_of_each) result(text)
      character(*), intent(in) :: words(:)
      character(*), intent(in) :: end_of_each
      character(:), allocatable :: text

      integer :: i

      text = ""
      do i = 1, size(words)
         text = text // trim(words(i)) // end_of_each
      end do
   end function list

   !> Number of an entry point; 0 if there is none of that name, or none at which fields can be had
   function entry_point(name) result(number)
      character(*), intent(in) :: name
      integer :: number

      character(:), allocatable :: found

      do number = 1, EP_DESTRUCTOR - 1
         if (any(number == [EP_SECONDARY_CONSTRUCTOR, EP_FINISH])) cycle
         call comin_callback_get_ep_name(number, found)
         if (found == name) return
      end do
      number = 0
   end function entry_point

   !> Words between blanks
   function split(text, length) result(words)
      character(*), intent(in) :: text
      !> Of each word
      integer, intent(in) :: length
      character(length), allocatable :: words(:)

      integer :: first, last

      allocate (words(0))
      last = 0
      do
         first = verify(text(last + 1:), " ")
         if (first == 0) exit
         first = last + first
         last = scan(text(first:) // " ", " ") + first - 2
         words = [character(length) :: words, text(first:last)]
      end do
   end function split
end module comin_lines
