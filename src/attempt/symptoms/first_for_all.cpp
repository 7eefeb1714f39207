// The first part of an input stands for all.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom first_for_all;
const Symptom first_for_all = {
    .name = "the first part of an input is taken for all",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->relation == "first_for_all";
    },
    .cause = "The index of a load lacks a coordinate: a batch, a head or a row is left out.",
    .where = "the index of each load of the input that is named, and pointers that are made once",
    .remedy = "Add the coordinate of dim 0 times its stride.",
    .weight = 10,
};

}  // namespace tessera::attempt::symptoms
