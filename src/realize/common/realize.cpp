#include "realize/realize.h"

namespace tessera::realize {

std::string_view name_of(Kind kind) {
  return kind == Kind::synthesized ? "synthesized" : "library";
}

double Candidate::build_seconds() const {
  if (!source) return 0;
  return source->cutlass ? 35 : 3;
}

std::string Candidate::label() const {
  std::string text = realizer;
  const auto pick = [&](const char* key) -> const Json* {
    const auto it = config.find(key);
    return it == config.end() ? nullptr : &*it;
  };
  const auto extents = [&](const Json& list) {
    std::string out;
    for (const Json& x : list) out += (out.empty() ? "" : "x") + x.dump();
    return out;
  };
  for (const char* key : {"tile", "cluster"}) {
    if (const Json* v = pick(key)) text += " " + (v->is_array() ? extents(*v) : v->dump());
  }
  for (const char* key : {"schedule", "scheduler", "slices", "splits", "algo", "backend"}) {
    const Json* v = pick(key);
    if (v == nullptr) continue;
    if (v->is_string()) {
      if (*v != "persistent") text += " " + v->get<std::string>();
    } else {
      text += fmt::format(" {}={}", key, v->dump());
    }
  }
  if (config.value("fast_accum", false)) text += " fast_accum";
  return text;
}

}  // namespace tessera::realize
