// SPDX-License-Identifier: MIT
/// Scopes: what is made in one dies at its end. Each thread has scopes of its own, one inside the other. Knows nothing
/// of Python.
///
/// Compilers copy, move and finalize handles without telling, so no tensor dies by itself while a copy of its handle
/// may be in use. A scope knows when that is over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ftn_pytorch.h"

namespace fpt {

/// Open a scope inside those of this thread.
/// @param scope  in: a scope of this variable that was never ended is ended first, with a warning; out: identifies it
FPT_API void begin_scope(int64_t* scope, std::string_view name);
/// End a scope, and those inside it with a warning. FPT_ERR_ARGUMENT if it is not open on this thread.
FPT_API void end_scope(int64_t scope);
/// The variable at `home` ends its life: the scope that it has begun, if that is open on this thread, ends with those
/// inside it, without a warning.
void leave_scope(const int64_t* home);
/// Move a tensor that was made in a scope, or in one inside it, to the scope outside. FPT_ERR_ARGUMENT if it is not
/// open on this thread.
void keep_in_scope(int64_t scope, int64_t tensor);
/// Compute gradients, or none, until the scope ends. FPT_ERR_ARGUMENT if it is not the innermost one of this thread.
void set_gradients(int64_t scope, bool wanted);
/// What the scopes of this thread have chosen, the innermost one that has; true if none has.
FPT_API bool gradients_are_chosen() noexcept;
/// torch.autocast on this thread until the scope ends; empty texts for torch's defaults. FPT_ERR_ARGUMENT if it is not
/// the innermost one of this thread, or torch does not know the device or the element type.
void enter_autocast(int64_t scope, const std::string& device, const std::string& dtype);

class Tensor;

/// Whether torch would record what is computed with a tensor: it requires gradients, and they are on for this thread.
FPT_API bool records_gradients(Tensor& tensor);

/// Whether this thread is within a scope.
bool is_in_scope() noexcept;
/// Let a tensor end with the innermost scope of this thread; false without one.
bool add_to_scope(int64_t tensor);

}  // namespace fpt
