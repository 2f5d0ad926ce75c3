// SPDX-License-Identifier: MIT
/// Which rank of a job has written a file: ranks that save one name one after the other do not meet at its lock, and
/// the last one would win. As checkpoint/file.py does it.
#pragma once

#include <ostream>
#include <string>

#include "base/rank.hpp"
#include "ftn_pytorch.h"

namespace fpt::direct {

/// FPT_ERR_LOCKED if the file that is there was written by another rank of this job, as its description tells, or the
/// comment of another zip archive. Asked under the lock of the file.
FPT_API void refuse_other_rank(const std::string& file);

/// Ranks that all go on from the file of one draw the same random numbers. As checkpoint/base.py says it.
void warn_of_other_rank(const std::string& description, const std::string& file, Rank own);

/// Have another zip archive, which is complete, tell that in its comment. Outside of a job it stays as it is.
FPT_API void sign_archive(std::ostream& archive);

}  // namespace fpt::direct
