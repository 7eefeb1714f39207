#include "attempt/depends.h"

namespace tessera::attempt {

Dependence dependence_of(const Verdict& v) {
  Dependence out;
  if (!v.wrong) return out;
  for (const Json& d : v.wrong->depends) {
    const Json& weight = d.at("weight");
    if (d.at("dim").get<int>() < 0) {
      out.uneven = v.wrong->depends.size() > 1;
    } else if (weight.is_null()) {
      out.foreign = true;
    } else if (weight.get<double>() == 0) {
      out.missing = true;
    } else {
      out.counted = true;
    }
  }
  return out;
}

}  // namespace tessera::attempt
