// SPDX-License-Identifier: MIT
/// Which ranks write what observation finds, and how much of it: FTN_PYTORCH_LOG_RANKS and FTN_PYTORCH_LOG_LIMIT.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

/// Read the variables, once. An invalid value gives a warning on rank 0: then rank 0 alone writes, or the
/// limit is the usual one.
void read_choice();

/// True if this rank writes. Before read_choice() all do.
FPT_API bool writes_here() noexcept;

/// Bytes that the log may have, as many the trace, and the recorded calls; no_limit for any number.
/// @param usual  where the variable says nothing
FPT_API int64_t size_limit(int64_t usual = int64_t{100} << 20) noexcept;

/// What is written when the limit is reached: "the log ends here: ...".
std::string end_at_limit(std::string_view what);

/// Whether a list such as "0,100-103" has a number; none for what is no such list.
std::optional<bool> is_in_list(std::string_view list, int64_t number);

/// Bytes of "1000", "64K", "100M" or "2G", of powers of 1024; no_limit for "0", none for anything else.
std::optional<int64_t> bytes_of(std::string_view text);

}  // namespace fpt
