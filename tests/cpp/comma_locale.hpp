// SPDX-License-Identifier: MIT
/// A program in a locale that writes 1.234,5. It needs none that is installed.
#pragma once

#include <clocale>
#include <cstdio>
#include <cstring>
#include <locale>

#include "support.hpp"

namespace fpt::test {

/// The locale of C and of C++ until the end of the scope.
class CommaLocale {
 public:
  CommaLocale() {
    // What localedef makes of decimal_point "," and thousands_sep ".": offsets of six values, and these.
    constexpr uint32_t category = LC_NUMERIC, head[] = {0x20031115 ^ category, 6, 32, 34, 36, 40, 44, 48};
    constexpr uint32_t wide[] = {',', '.'};
    std::string file(reinterpret_cast<const char*>(head), sizeof head);
    file.append(",\0.\0\3\3\0\0", 8).append(reinterpret_cast<const char*>(wide), sizeof wide);
    folder_.write("comma/LC_NUMERIC", file.append("ANSI_X3.4-1968", 15));
    EXPECT_NE(std::setlocale(LC_NUMERIC, "comma"), nullptr);
    std::locale::global(std::locale(std::locale::classic(), new Separators));
    char text[16];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    std::ostringstream stream;
    stream << 1234.5;
    EXPECT_STREQ(text, "0,5");
    EXPECT_EQ(stream.str(), "1.234,5");
  }
  ~CommaLocale() {
    std::locale::global(std::locale::classic());  // that of C, too
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  struct Separators : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  const Folder folder_;
  const Variable path_{"LOCPATH", folder_.path().string()};
};

}  // namespace fpt::test
