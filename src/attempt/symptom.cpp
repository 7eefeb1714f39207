#include "attempt/symptom.h"

#include <algorithm>

namespace tessera::attempt {
namespace {

constexpr std::size_t most = 3;

}  // namespace

bool mentions(const Verdict& v, std::string_view text) {
  const auto in = [&](const std::string& words) { return words.find(text) != std::string::npos; };
  if (in(v.cause)) return true;
  for (const std::string& w : v.warnings) {
    if (in(w)) return true;
  }
  for (const GateResult& g : v.gates) {
    if (in(g.note)) return true;
  }
  return std::any_of(v.diagnostics.begin(), v.diagnostics.end(), [&](const Diagnostic& d) {
    return in(d.message) || in(d.code) || std::any_of(d.notes.begin(), d.notes.end(), in);
  });
}

bool far_from_peak(const Verdict& v) {
  return v.measured && v.measured->ms > 0 && v.measured->bound != "launch" &&
         v.measured->floor_ms < 0.5 * v.measured->ms;
}

std::vector<Advice> advice_for(const Verdict& v) {
  std::vector<const Symptom*> fitting;
  for (const Symptom* s : symptoms::all()) {
    if (s->shows(v)) fitting.push_back(s);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const Symptom* a, const Symptom* b) { return a->weight > b->weight; });
  std::vector<Advice> out;
  for (const Symptom* s : fitting) {
    if (out.size() == most) break;
    out.push_back({.symptom = std::string(s->name),
                   .cause = std::string(s->cause),
                   .where = std::string(s->where),
                   .remedy = std::string(s->remedy)});
  }
  return out;
}

}  // namespace tessera::attempt
