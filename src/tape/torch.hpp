// SPDX-License-Identifier: MIT
/// The headers of libtorch that a tape needs, which know nothing of Python.
#pragma once

#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
