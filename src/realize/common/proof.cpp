#include "realize/common/proof.h"

#include <mutex>
#include <optional>

#include "check/check.h"
#include "check/kind.h"

namespace tessera::realize {
namespace {

inline constexpr Code unproved{"TS0415", "realize.unproved"};

Result<Json> prove(const core::Kernel& kernel) {
  TESSERA_TRY(means, check::means_of(kernel));
  const check::Report report = check::check(kernel, {}, means);
  for (const check::Finding& f : report.findings)
    if (f.verdict == check::Verdict::refuted) return error(f.diagnostics.front());
  for (const check::Finding& f : report.findings) {
    if (f.verdict == check::Verdict::proved) continue;
    return error(fail(unproved, "`{}` of kernel `{}` is {}: {}", f.kind->name, kernel.name,
                      check::name_of(f.verdict), f.reason)
                     .expect("all kinds of invariants proved")
                     .help("`tessera check` says what is known of each kind"));
  }
  const check::Coverage& c = report.coverage;
  return Json{{"verdict", "proved"},   {"kinds", report.findings.size()}, {"stores", c.stores},
              {"loads", c.loads},      {"products", c.products},          {"waits", c.waits},
              {"executed", c.reached}, {"assertions", c.assertions}};
}

}  // namespace

Proof made_once(Proof proof) {
  struct Once {
    Proof proof;
    std::once_flag asked;
    std::optional<Result<Json>> answer;
  };
  const auto once = std::make_shared<Once>();
  once->proof = std::move(proof);
  return [once] {
    std::call_once(once->asked, [&] { once->answer = once->proof(); });
    return *once->answer;
  };
}

Proof proof_of(std::shared_ptr<const core::Kernel> kernel) {
  return made_once([kernel = std::move(kernel)] { return prove(*kernel); });
}

Proof proof_of_all(std::vector<Proof> proofs) {
  return [proofs = std::move(proofs)]() -> Result<Json> {
    Json all;
    for (const Proof& proof : proofs) {
      TESSERA_TRY(one, proof());
      if (all.is_null()) {
        all = std::move(one);
        continue;
      }
      for (const char* number : {"stores", "loads", "products", "waits", "executed"})
        all[number] = all[number].get<int64_t>() + one[number].get<int64_t>();
    }
    return all;
  };
}

}  // namespace tessera::realize
