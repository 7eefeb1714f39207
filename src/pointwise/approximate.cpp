#include "pointwise/approximate.h"

#include "base/text.h"

namespace tessera::pointwise {

std::string approximated(std::string statements, int mantissa_bits) {
  statements = replace_all(std::move(statements), "tsr_tanh_approx(", "tsb_tanh(");
  if (mantissa_bits > 11) return statements;
  const auto rename = [&](const std::string& to, const std::string& f) {
    statements = replace_all(std::move(statements), "tsr_" + f, to + f);
  };
  if (mantissa_bits <= 8)
    for (const char* f : {"sigmoid(", "silu(", "tanh(", "gelu_tanh("}) rename("tsb_", f);
  for (const char* f : {"exp(", "sigmoid(", "silu(", "tanh(", "gelu_tanh(", "gelu_erf("})
    rename("tsf_", f);
  return statements;
}

}  // namespace tessera::pointwise
