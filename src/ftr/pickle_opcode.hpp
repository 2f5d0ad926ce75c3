// SPDX-License-Identifier: MIT
/// The opcodes that torch.save needs for plain values, with the names of Python's pickletools.
#pragma once

namespace ftr {

/// Those of protocol 2.
enum class Opcode : unsigned char {
  PROTO = 0x80,
  STOP = '.',
  MARK = '(',
  NONE = 'N',
  NEWTRUE = 0x88,
  NEWFALSE = 0x89,
  BININT = 'J',
  BININT1 = 'K',
  BININT2 = 'M',
  LONG1 = 0x8a,
  BINFLOAT = 'G',
  BINUNICODE = 'X',
  EMPTY_LIST = ']',
  APPEND = 'a',
  APPENDS = 'e',
  EMPTY_DICT = '}',
  SETITEM = 's',
  SETITEMS = 'u',
  EMPTY_TUPLE = ')',
  TUPLE1 = 0x85,
  TUPLE2 = 0x86,
  TUPLE3 = 0x87,
  TUPLE = 't',
  BINPUT = 'q',
  LONG_BINPUT = 'r',
  BINGET = 'h',
  LONG_BINGET = 'j',
  GLOBAL = 'c',
  BINPERSID = 'Q',
  REDUCE = 'R'
};

}  // namespace ftr
