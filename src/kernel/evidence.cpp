#include "kernel/evidence.h"

#include <cmath>

namespace tessera::kernel {
namespace {

double figure(const Json& j, const char* name) {
  const auto at = j.find(name);
  if (at == j.end()) return 0;
  return at->is_number() ? at->get<double>() : NAN;
}

}  // namespace

Json to_json(const Evidence& e) {
  Json j = {{"ms", e.ms},
            {"ci95", e.ci95},
            {"sustained_ms", e.sustained_ms},
            {"max_error", e.max_error},
            {"rms_error", e.rms_error},
            {"baseline_max_error", e.baseline_max_error},
            {"baseline_rms_error", e.baseline_rms_error}};
  if (!e.resources.is_null()) j["resources"] = e.resources;
  if (e.unreliable) j["unreliable"] = true;
  return j;
}

Evidence evidence_from_json(const Json& j) {
  Evidence e;
  if (!j.is_object()) return e;
  e.ms = figure(j, "ms");
  e.ci95 = figure(j, "ci95");
  e.sustained_ms = figure(j, "sustained_ms");
  e.max_error = figure(j, "max_error");
  e.rms_error = figure(j, "rms_error");
  e.baseline_max_error = figure(j, "baseline_max_error");
  e.baseline_rms_error = figure(j, "baseline_rms_error");
  e.unreliable = j.contains("unreliable") && j.at("unreliable") == true;
  e.resources = j.value("resources", Json());
  return e;
}

}  // namespace tessera::kernel
