# SPDX-License-Identifier: MIT
# The losses that test_checkpoint wrote in one run of 200 steps are those of two runs of 100, to the last bit.
file(STRINGS whole_200.txt whole)
file(STRINGS halves_100.txt first)
file(STRINGS halves_200.txt second)
list(LENGTH whole count)
if(NOT count EQUAL 200)
  message(FATAL_ERROR "the whole run has ${count} losses")
endif()
if(NOT "${whole}" STREQUAL "${first};${second}")
  message(FATAL_ERROR "the losses differ: see whole_200.txt, halves_100.txt, halves_200.txt")
endif()
