// SPDX-License-Identifier: MIT
/// Refusals of the reader as a program of the library is told of them.
#pragma once

#include "plugin/failure.hpp"
#include "support.hpp"

namespace ftr::test {

using fpt::test::Outcome;

template <class Body>
Outcome outcome_of(const Body& body) {
  return fpt::test::outcome_of([&] { fpt::direct::translated(body); });
}

}  // namespace ftr::test
