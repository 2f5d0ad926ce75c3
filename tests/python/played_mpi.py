# SPDX-License-Identifier: MIT
"""An MPI of one process for tests: handles, and subroutines as Fortran has them."""

import ctypes

from ftn_pytorch.errors import FtnPytorchError

LONE, SECOND_OF_TWO, FIRST_OF_TWO = 3, 4, 5


def words_of(text):
    """What a rank sends for a text: its length, and the text in words."""
    data = text.encode()
    return [[len(data)], [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]]


class Played:
    """In place of the library, which calls MPI. Rank 1 of the communicator of two sends texts, or never comes."""

    def __init__(self):
        self.from_others: list[list[int]] = []
        self.sent: list[list[int]] = []
        self.pending = False

    def MpiSum(self, handle, limit):
        return Ranks(self, handle)

    def call_mpi(self, purpose, name, addresses):
        getattr(self, name)(*map(ctypes.c_int32.from_address, addresses))

    def mpi_comm_group_(self, handle, group):
        group.value = 100 + handle.value

    def mpi_group_compare_(self, one, other, result):
        result.value = 55 if one.value == other.value else 66

    def mpi_type_create_f90_integer_(self, digits, kind):
        kind.value = 77

    def mpi_iallgather_(self, mine, count, kind, lengths, count_again, kind_again, handle, request):
        assert kind.value == kind_again.value == 77 and count.value == count_again.value == 1
        size = size_of(handle.value)
        self._gather(row(mine, 1), row(lengths, size), [1] * size, list(range(size)), handle)

    def mpi_iallgatherv_(self, mine, count, kind, words, counts, places, kind_again, handle, request):
        assert kind.value == kind_again.value == 77
        counts, places = (list(row(each, size_of(handle.value))) for each in (counts, places))
        self._gather(row(mine, count.value), row(words, sum(counts)), counts, places, handle)

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


class Ranks:
    """The ranks of a communicator."""

    def __init__(self, mpi, handle):
        self._mpi, self._handle, self.is_usable = mpi, handle, True
        self.rank, self.size = int(handle == SECOND_OF_TWO), size_of(handle)

    def exchange(self, limit, purpose, name, addresses):
        if not self.is_usable:
            raise FtnPytorchError("PYTHON", f"{purpose} cannot be done any more")
        handle, request = ctypes.c_int32(self._handle), ctypes.c_int32()
        self._mpi.call_mpi(purpose, name, [*addresses, *map(ctypes.addressof, (handle, request))])
        if self._mpi.pending:
            self.is_usable = False
            raise FtnPytorchError("PYTHON", f"has waited {limit:g} s in {purpose}")


def size_of(handle):
    return 2 if handle in (FIRST_OF_TWO, SECOND_OF_TWO) else 1


def row(first, count):
    return (ctypes.c_int32 * count).from_address(ctypes.addressof(first))
