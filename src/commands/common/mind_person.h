// A person at a checkpoint, on the terminal.
#pragma once

#include "agent/loop.h"

namespace tessera::commands {

/// Shows it on stderr and reads an answer from stdin: approve, edit (in $VISUAL, $EDITOR or vi),
/// refuse with a reason, or stop. Errors: TS0744 where stdin ends without one, TS0743 for stop.
Result<agent::Decision> ask_person(const agent::Checkpoint& checkpoint);

}  // namespace tessera::commands
