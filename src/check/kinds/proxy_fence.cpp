// Between an access by the generic proxy and a later one of the same byte by the async proxy stands
// a fence, in the thread of the first.
//
// The fence stands before the thread hands over; one in the thread that issues the copy orders
// nothing of other threads.
#include "check/kind.h"

namespace tessera::check::kinds {

extern const Kind proxy_fence = {
    .name = "proxy_fence",
    .number = 13,
    .law =
        "Between an access by the generic proxy and a later one of the same byte by the async "
        "proxy stands a fence, in the thread of the first.",
    .code = {"TS0865", "check.proxy_fence"},
    .judge = judge_by_runs,
};

}  // namespace tessera::check::kinds
