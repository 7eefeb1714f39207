#include "diag/explain_families.h"

namespace tessera {
namespace {

constexpr Explanation records[] = {
    {"TS0610", "registry.bad_candidate_record",
     R"(A stored kernel cannot be read, or its source is not the one that was stored.)",
     R"(The entry was written by another version, or the file was changed from outside.)",
     R"(Drop the entry; the pattern is then tuned anew.)",
     R"(
tessera registry prune hash:3fa2
)"},
    {"TS0621", "store.cannot_open",
     R"(The registry's file, or the folder for it, cannot be opened or made.)",
     R"(A part of the path is a file instead of a folder, or a disk is not mounted.)",
     R"(Check the path in the message, or set TESSERA_HOME to another place.)",
     R"(
TESSERA_HOME=/data/$USER/tessera tessera registry list
)"},
    {"TS0622", "store.disk_full",
     R"(The registry cannot be written: no space. What was stored before is still there.)",
     R"(The disk or the user's quota is full.)",
     R"(Free space, prune failed trials, or set TESSERA_HOME to another disk.)",
     R"(
tessera registry prune failed
)"},
    {"TS0623", "store.read_only", R"(The registry lies where this user may not write.)",
     R"(The folder belongs to another user or is mounted read-only.)",
     R"(Set TESSERA_HOME to a folder that can be written. --use-registry=false does without a
     registry.)",
     R"(
tessera optimize mlp.py --use-registry=false
)"},
    {"TS0624", "store.busy", R"(Another process kept the registry locked for 30 seconds.)",
     R"(A process that mends a damaged registry, or one that was stopped (Ctrl-Z), holds it.)",
     R"(Wait for it or end it; `fuser FILE` names it.)",
     R"(
fuser ~/.local/share/tessera/registry.sqlite.lock
)"},
    {"TS0625", "store.corrupt", R"(The registry's file is damaged.)",
     R"(A disk error, or a copy that was made while a process wrote.)",
     R"(Open it again: opening mends it from its second copy and keeps the damaged file aside.)",
     R"(
tessera registry list
)"},
    {"TS0626", "store.newer_schema",
     R"(The registry was written by a newer version of tessera. Nothing in it is touched.)",
     R"(Two versions share one home folder.)",
     R"(Update tessera, or give the older one a TESSERA_HOME of its own.)",
     R"(
TESSERA_HOME=~/.tessera-old tessera optimize mlp.py
)"},
    {"TS0627", "store.io_failed",
     R"(Reading, writing or locking the registry failed below SQLite.)",
     R"(The disk or a network file system reports an error, or does not support locks.)",
     R"(See the kernel's log; set TESSERA_HOME to a local disk.)",
     R"(
TESSERA_HOME=/tmp/tessera tessera optimize mlp.py
)"},
    {"TS0631", "registry.bad_entry",
     R"(An entry of the registry, or of an export, lacks a field or has an impossible one.)",
     R"(It was written by another version or edited by hand.)",
     R"(Export it again with this version.)",
     R"(
error[TS0631]: a registry entry has the status `maybe`; expected accepted or failed
)"},
    {"TS0632", "registry.bad_filter", R"(A filter names a field that entries do not have.)",
     R"(Filters are words, and terms FIELD=VALUE; the message lists the fields.)",
     R"(Take one of the fields.)",
     R"(
tessera registry list rule=gemm precision=bf16
)"},
    {"TS0633", "registry.bad_record",
     R"(The registry's second copy holds a record of a kind that this version does not know.)",
     R"(A newer version wrote it.)", R"(Update tessera.)",
     R"(
error[TS0633]: the registry's copy has a record `tag`
)"},
    {"TS0634", "registry.no_entry", R"(No entry has a hash that begins with these digits.)",
     R"(The hash is mistyped, or the entry was pruned.)",
     R"(`tessera registry list` shows the hashes.)",
     R"(
tessera registry show 3fa2
)"},
    {"TS0635", "registry.ambiguous", R"(Several entries have hashes that begin with these digits.)",
     R"(Too few digits were given.)", R"(Give more of them.)",
     R"(
tessera registry show 3fa2c
)"},
    {"TS0636", "registry.bad_prune", R"(`tessera registry prune` does not know what is to go.)",
     R"(The word is none of its own, or the age has no unit.)",
     R"(Take one of: failed, imported, stale, older:30d, hash:PREFIX, all, kernels.)",
     R"(
tessera registry prune older:30d     # units: h, d, w
)"},
    {"TS0637", "registry.bad_import", R"(The file is JSON, but not an export of a registry.)",
     R"(Its schema is another, or it holds more entries than an import takes.)",
     R"(Make it with `tessera registry export`.)",
     R"(
tessera registry export -o mine.json
)"},
    {"TS0638", "registry.mended", R"(A warning: the registry was damaged and has been mended.)",
     R"(Some of its bytes were wrong. Readable rows and the second copy were put together; the note
     says how much was saved.)",
     R"(Nothing has to be done. The damaged files stay beside the registry until they are deleted.)",
     R"(
rm ~/.local/share/tessera/registry.sqlite.damaged-*
)"},
    {"TS0639", "registry.bad_field",
     R"(An entry of an imported file has a field that tessera would not have written. Nothing was
     imported.)",
     R"(Every field of an import is checked for type, size and characters, for the file may come from
     anybody.)",
     R"(Ask for a fresh export.)",
     R"(
error[TS0639]: entry 3 of the file is not one that tessera wrote
)"},
    {"TS0640", "registry.not_offered",
     R"(A warning: what was imported for a pattern is of no use here.)",
     R"(No realizer of this version offers its configuration, or none of its kernels passed on this
     machine.)",
     R"(Nothing has to be done: the pattern is tuned as if it had not been imported.)",
     R"(
tessera registry prune imported     # drops what was not tried yet
)"},
};

}  // namespace

std::span<const Explanation> explained_registry() {
  return records;
}

}  // namespace tessera
