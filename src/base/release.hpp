// SPDX-License-Identifier: MIT
/// Which versions of torch can take the place of each other: releases of one minor version. Their headers are the same
/// but for texts. installation.py says the same for Python.
#pragma once

#include <string>
#include <string_view>

namespace fpt {

/// "2.13" of a release such as "2.13.0" or "2.13.1+cu130"; empty for any other version, such as "2.13.0a0+git145a".
inline std::string minor_of_release(std::string_view version) {
  version = version.substr(0, version.find('+'));
  std::size_t points = 0, minor = 0;
  char before = '.';
  for (std::size_t i = 0; i < version.size(); ++i) {
    const bool is_digit = version[i] >= '0' && version[i] <= '9';
    if (!is_digit && (version[i] != '.' || before == '.')) return {};
    if (!is_digit && ++points == 2) minor = i;
    before = version[i];
  }
  return points == 2 && before != '.' ? std::string(version.substr(0, minor)) : std::string();
}

/// Whether what was built for one torch may run with another one: what is no release fits itself alone. What follows a
/// plus is the kind of build.
inline bool fits_torch(std::string_view built_for, std::string_view here) {
  const std::string minor = minor_of_release(built_for);
  return minor.empty() ? built_for.substr(0, built_for.find('+')) == here.substr(0, here.find('+'))
                       : minor == minor_of_release(here);
}

}  // namespace fpt
