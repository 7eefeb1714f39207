// Whole columns are wrong.
#include "attempt/symptom.h"

namespace tessera::attempt::symptoms {

extern const Symptom wrong_columns;
const Symptom wrong_columns = {
    .name = "whole columns are wrong",
    .shows = [](const Verdict& v) -> bool {
      return v.wrong && v.wrong->lies == "columns" && v.wrong->relation.empty();
    },
    .cause =
        "What belongs to a column (a bias, a scale, a column of the second operand) is read "
        "at another place for these, or a lane's share of a fragment goes to another column.",
    .where = "the index of what is broadcast along the rows, and the map from lanes to columns",
    .remedy =
        "Read a value of a column by the column's index alone. Compare the first wrong column "
        "with the width of a vector, a fragment and a tile.",
    .weight = 5,
};

}  // namespace tessera::attempt::symptoms
