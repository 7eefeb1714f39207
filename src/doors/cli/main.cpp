// The command line: a rendering of the command table.
#include <fmt/format.h>

#include "commands/commands.h"

int main() {
  fmt::print("tessera\n");
  return 0;
}
