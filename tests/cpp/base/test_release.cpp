// SPDX-License-Identifier: MIT
#include "base/release.hpp"
#include "support.hpp"

namespace fpt {
namespace {

struct Row {
  const char *built_for, *here, *minor;
  bool fits;
};

constexpr Row rows[] = {
#include "base/torch_versions.inc"
};

TEST(ReleaseTest, ReleasesOfOneMinorVersionFitEachOther) {
  for (const Row& row : rows) {
    EXPECT_EQ(minor_of_release(row.here), row.minor) << row.here;
    EXPECT_EQ(fits_torch(row.built_for, row.here), row.fits) << row.built_for << " with " << row.here;
  }
}

}  // namespace
}  // namespace fpt
