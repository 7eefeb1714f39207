// Kernels of a kernel file as tests take them: elaborated, verified, and judged by their meaning.
#pragma once

#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>

#include "check/check.h"
#include "core/verify.h"
#include "language/language.h"

namespace tessera::proofs {

using Constants = std::map<std::string, language::Constant>;

/// Kernel `name` of `text`, whose file is `file`; of integers that `options` does not give,
/// `defaults`. The test fails, and there is none, where it cannot be made.
inline std::optional<core::Kernel> checked_kernel(const std::string& file, const std::string& text,
                                                  const std::string& name,
                                                  language::Options options,
                                                  const std::map<std::string, int64_t>& defaults) {
  for (const auto& [constant, value] : defaults) options.constants.try_emplace(constant, value);
  auto kernel = language::elaborate({file, text}, name, options);
  EXPECT_TRUE(kernel) << to_text(kernel.error());
  if (!kernel) return std::nullopt;
  for (const Diagnostic& d : core::verify(*kernel, **arch::find("sm_90a")))
    ADD_FAILURE() << to_text(d);
  return std::move(*kernel);
}

inline check::Report judged(const core::Kernel& kernel) {
  const auto means = check::means_of(kernel);
  if (!means) ADD_FAILURE() << to_text(means.error());
  return check::check(kernel, {}, means ? *means : std::nullopt);
}

}  // namespace tessera::proofs
