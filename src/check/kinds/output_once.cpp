// Each tile of the output is written by one block in one turn.
//
// See check/raster.h for the orders of tiles that are known.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind output_once = {
    .name = "output_once",
    .number = 4,
    .law = "Each tile of the output is written by one block in one turn.",
    .code = {"TS0876", "check.output_once"},
    .judge = judge_by_flow,
};

}  // namespace tessera::check::kinds
