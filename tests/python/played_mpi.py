# SPDX-License-Identifier: MIT
"""An MPI of one process for tests: handles, and subroutines as Fortran has them."""

import ctypes

NULL, LONE, SECOND_OF_TWO, FIRST_OF_TWO, INTER = 2, 3, 4, 5, 6


def words_of(text):
    """What a rank sends for a text: its length, and the text in words."""
    data = text.encode()
    return [[len(data)], [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]]


class Played:
    """Subroutines of MPI. Rank 1 of the communicator of two sends texts, or never comes."""

    initialised, finalised, code = 1, 0, 0
    has_wide_integers = False

    def __init__(self):
        self.from_others: list[list[int]] = []
        self.sent: list[list[int]] = []

    def __call__(self, name):
        def subroutine(*arguments):
            values = [a if isinstance(a, ctypes.Array) else a._obj for a in arguments]
            getattr(self, name)(*values[:-1])
            values[-1].value = self.code

        if not hasattr(self, name):
            raise AttributeError(name)
        return subroutine

    def mpi_initialized_(self, flag):
        kind = ctypes.c_int64 if self.has_wide_integers else ctypes.c_int32
        kind.from_buffer(flag).value = self.initialised

    def mpi_finalized_(self, flag):
        flag.value = self.finalised

    def mpi_comm_get_parent_(self, parent):
        parent.value = NULL

    def mpi_comm_test_inter_(self, handle, flag):
        flag.value = handle.value == INTER

    def mpi_comm_rank_(self, handle, rank):
        rank.value = handle.value == SECOND_OF_TWO

    def mpi_comm_size_(self, handle, size):
        size.value = 2 if handle.value in (FIRST_OF_TWO, SECOND_OF_TWO) else 1

    def mpi_comm_group_(self, handle, group):
        group.value = 100 + handle.value

    def mpi_group_compare_(self, one, other, result):
        result.value = 55 if one.value == other.value else 66

    def mpi_type_create_f90_integer_(self, digits, kind):
        kind.value = 77

    def mpi_iallgather_(self, mine, count, kind, lengths, count_again, kind_again, handle, request):
        assert kind.value == kind_again.value == 77 and count.value == count_again.value == 1
        self._gather(mine, lengths, [1] * len(lengths), list(range(len(lengths))), handle)

    def mpi_iallgatherv_(self, mine, count, kind, words, counts, places, kind_again, handle, request):
        assert kind.value == kind_again.value == 77 and count.value == len(mine)
        self._gather(mine, words, list(counts), list(places), handle)

    def _gather(self, mine, received, counts, places, handle):
        """What the other rank of two sends is the next of ``from_others``, which has nothing for an empty text."""
        self.sent.append(list(mine))
        own = int(handle.value == SECOND_OF_TWO)
        received[places[own] : places[own] + counts[own]] = list(mine)
        self.pending = False
        if len(counts) == 2 and counts[1 - own]:
            self.pending = not self.from_others
            if self.from_others:
                received[places[1 - own] : places[1 - own] + counts[1 - own]] = self.from_others.pop(0)

    def mpi_test_(self, request, done, status):
        done.value = not self.pending
