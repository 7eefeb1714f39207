// What is known about a candidate after its gates.
#pragma once

#include "base/json.h"

namespace tessera::kernel {

struct Evidence {
  double ms = 0;
  double ci95 = 0;                // half of the interval, milliseconds
  double sustained_ms = 0;        // a call back to back; 0: not measured
  double max_error = 0;           // relative to the mean magnitude of the reference
  double rms_error = 0;           // relative RMS
  double baseline_max_error = 0;  // the same of eager at this precision
  double baseline_rms_error = 0;
  bool unreliable = false;          // three times of it differ by more than a factor of two
  Json resources = Json::object();  // toolchain::Built::resources; null where they are not known
};

/// The fields by their names; "resources" is absent where they are not known, "unreliable" where it
/// is not.
Json to_json(const Evidence& e);
/// Reads that, also of versions that knew fewer fields: an absent figure is 0. JSON has no infinite
/// and no undefined numbers; what it has instead, null, is read as undefined.
Evidence evidence_from_json(const Json& j);

}  // namespace tessera::kernel
