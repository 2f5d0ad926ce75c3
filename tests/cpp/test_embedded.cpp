// SPDX-License-Identifier: MIT
/// What Python code sees of the core.
#include "script.hpp"

namespace fpt {
namespace {

using test::Script;

TEST(EmbeddedModule, TellsTheVersionOfTheHeader) {
  const Script script("import _ftn_pytorch");
  EXPECT_EQ(script.text("_ftn_pytorch.version()"), FPT_VERSION);
}

TEST(EmbeddedModule, SendsWarningsToTheProgram) {
  test::CollectedWarnings warnings;
  const Script script("import _ftn_pytorch\ndef f(): _ftn_pytorch.warn('gr\xC3\xBC\xC3\x9F')");
  ASSERT_OK(script.call("f"));
  EXPECT_EQ(warnings.all(), "gr\xC3\xBC\xC3\x9F\n");
}

}  // namespace
}  // namespace fpt
