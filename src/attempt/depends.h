// What `depends` of a wrong result comes to, for the rows that speak of it.
#pragma once

#include "attempt/verdict.h"

namespace tessera::attempt {

struct Dependence {
  bool foreign = false;  // on elements that it must not depend on
  bool missing = false;  // not on elements that it must depend on
  bool counted = false;  // on some elements of a dim more, or less, than on the others
  bool uneven = false;   // on whole inputs, on each another number of times what it must
};

Dependence dependence_of(const Verdict& v);

}  // namespace tessera::attempt
