// SPDX-License-Identifier: MIT
/// What a rank asks the process that works for it, and what that answers. Knows nothing of Python.
///
/// A request begins where the shared memory begins: what is wanted, a text, five numbers, two lists of arguments. A
/// load is followed by communicator and place of the rank. The answer begins where the request ends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "calls/guard.hpp"
#include "ftn_pytorch.h"
#include "node/segment.hpp"
#include "values/scopes.hpp"

namespace fpt {

enum class Wish : int64_t { load, reload, has, save, checkpoint, restore, call, train };

/// How an answer begins: the call has ended, or the worker wants numbers of all ranks and waits for them.
enum class Answering : int64_t { ended, meets };

/// What comes before the arguments of a request.
struct Request {
  Wish wish;
  std::string_view text;          ///< a function, a file
  int64_t first = 0, second = 0;  ///< of a call: its flags, and whether its results are wanted
  bool is_list = false;           ///< of a call
  int64_t places = 0;             ///< number of the places where its arrays lie, 0: they follow their descriptions
  bool gradients = gradients_are_chosen();  ///< on in the scopes of the rank

  template <class Self>
  static auto fields(Self& of) {
    return std::tie(of.wish, of.text, of.first, of.second, of.is_list, of.places, of.gradients);
  }
};

/// What every answer of a call has; results may follow.
struct Outcome {
  fpt_status status = FPT_OK;
  std::string text;                   ///< of the error; of a load: what runs the file
  std::vector<std::string> warnings;  ///< that came up meanwhile
  std::vector<int64_t> begins;        ///< where the arrays of such calls lie from now on, none: where they lay
  int64_t number = 0;                 ///< completed, found, restored; of the places of `begins`
  double loss = 0;
  bool has_results = false;

  template <class Self>
  static auto fields(Self& of) {
    return std::tie(of.status, of.text, of.warnings, of.number, of.loss, of.has_results, of.begins);
  }
  /// Run `body`; what it throws takes the place of all but the warnings.
  template <class Body>
  void attempt(const Body& body) {
    if (const fpt_status failed = guard(body); failed != FPT_OK)
      *this = {failed, last_error(), std::move(warnings), {}};
  }
};

}  // namespace fpt
