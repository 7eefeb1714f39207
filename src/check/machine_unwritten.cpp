// What is said of shared memory that is read and that nothing has written: whose byte it is, and
// what writes other parts of the same storage, since that is often what should have written here.
#include "check/machine.h"

namespace tessera::check {
namespace {

const core::Shared* storage_at(const core::Kernel& k, int64_t byte) {
  for (const core::Shared& s : k.shared) {
    if (s.at <= byte && byte < s.at + s.bytes()) return &s;
  }
  return nullptr;
}

}  // namespace

void Machine::report_unwritten(int at, const Instruction& i, int block, int cell) {
  const int64_t byte = footprints_.byte(cell);
  const core::Shared* const storage = storage_at(kernel_, byte);
  const std::string name = storage == nullptr ? "" : fmt::format(" of `{}`", storage->name);
  const core::Op* wrote = nullptr;
  const auto cells = static_cast<std::size_t>(footprints_.cell_count());
  for (std::size_t c = 0; c < cells && storage != nullptr; ++c) {
    const Cell& other = state.cells[static_cast<std::size_t>(block) * cells + c];
    if (other.written && storage_at(kernel_, footprints_.byte(static_cast<int>(c))) == storage)
      wrote = other.written->op;
  }
  std::string help = "wait for the copy that fills it before it is read";
  if (wrote != nullptr)
    help = fmt::format(
        "let a copy load this part{} as well, or wait for the copy that does: check which part of "
        "it each loads",
        name);
  report("initialized", at, i, "shared memory is read that nothing has written",
         "a write before it in every execution", fmt::format("none at byte {}{}", byte, name),
         std::move(help), wrote, "another part of it is written here");
}

}  // namespace tessera::check
