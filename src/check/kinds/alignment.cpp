// Shared memory starts at a multiple of what its swizzle and its barriers ask for.
//
// A swizzle acts on absolute addresses: a matrix whose start is not a multiple of the pattern's
// period is read in another order than it was written in. Every slot of a ring that a copy fills
// starts so.
#include "check/kind.h"

namespace tessera::check::kinds {
namespace {

constexpr Code misaligned{"TS0877", "check.alignment"};

Diagnostic refuse(const std::string& name, int64_t at, int64_t to) {
  return fail(misaligned, "`{}` does not start where its accesses need it to", name)
      .expect("a multiple of {} bytes", to)
      .but_found("byte {}", at)
      .help("move it to the next multiple of {}", to)
      .with("kind", "alignment");
}

Finding judge(const Subject& s, const Kind& /*k*/) {
  Finding out;
  for (const core::Shared& m : s.kernel.shared) {
    const int64_t to = arch::alignment_of(m.swizzle);
    if (m.at % to != 0) out.diagnostics.push_back(refuse(m.name, m.at, to));
  }
  for (const core::Barriers& b : s.kernel.barriers)
    if (b.at % 8 != 0) out.diagnostics.push_back(refuse(b.name, b.at, 8));
  out.verdict = out.diagnostics.empty() ? Verdict::proved : Verdict::refuted;
  return out;
}

}  // namespace

extern const Kind alignment = {
    .name = "alignment",
    .number = 18,
    .law =
        "Shared memory starts at a multiple of what its swizzle asks for, barriers at a multiple "
        "of 8 bytes.",
    .code = misaligned,
    .judge = judge,
};

}  // namespace tessera::check::kinds
