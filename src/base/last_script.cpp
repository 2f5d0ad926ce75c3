// SPDX-License-Identifier: MIT
#include "base/last_script.hpp"

namespace fpt {
namespace {

void (*provided)() noexcept = nullptr;

}  // namespace

__thread uint64_t last_script = 0;

void provide_modes(void (*put_back)() noexcept) noexcept { provided = put_back; }
void put_modes_back() noexcept { provided(); }

}  // namespace fpt
