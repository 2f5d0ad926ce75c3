// SPDX-License-Identifier: MIT
/// Texts of a saved recording that are kept in pieces: the state and the description of a new checkpoint come from
/// them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rank.hpp"
#include "ftr/holes.hpp"
#include "plugin/torch.hpp"

namespace fpt::direct {

/// What the holes between the pieces are filled with.
struct HoleValues {
  std::vector<std::pair<std::string, double>> numbers;  ///< for ("number", name)
  at::Tensor generator;                                 ///< for ("generator",): uint8 [n] on the host
  std::optional<int64_t> step;                          ///< for ("step",); null where there is none
  std::string written;                                  ///< for ("written",): "2030-01-31T12:00:00+0100"
  std::string host;                                     ///< for ("host",)
  int64_t rank = 0, ranks = 1;                          ///< for ("rank",), ("ranks",)
  int64_t rank_of_job = 0;                              ///< for ("rank_of_job",)
  std::optional<std::string> job;                       ///< for ("job",); null where there is none

  /// What is of this moment and process. @param own  its rank
  static HoleValues of_this_process(Rank own);
};

/// The pieces, a list of texts and of tuples that name holes, as one text. Numbers are the shortest that read back the
/// same, always real for Python. FPT_ERR_FORMAT for other pieces, unknown holes, and values that are not there.
[[nodiscard]] std::string filled(const c10::IValue& pieces, const HoleValues& values);

/// The same, with the places of the holes.
[[nodiscard]] ftr::FilledText filled_with_holes(const c10::IValue& pieces, const HoleValues& values);

/// "1.0", "0.001", "1e-05", as Python reads a float; "NaN", "Infinity", "-Infinity".
[[nodiscard]] std::string json_number(double value);

/// With quotes.
[[nodiscard]] std::string json_text(const std::string& text);

}  // namespace fpt::direct
