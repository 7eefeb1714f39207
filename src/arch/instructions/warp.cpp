// Values between the lanes of a warp (PTX ISA, "shfl.sync", "vote.sync", "redux.sync",
// "elect.sync").
#include "arch/instruction.h"

namespace tessera::arch {
namespace {

Operand out(std::string_view name = "to") {
  return {.name = name, .kind = OperandKind::b32, .direction = Direction::out};
}
Operand in(std::string_view name) {
  return {.name = name, .kind = OperandKind::b32};
}
/// All lanes of the mask take part; it orders no memory.
Effects together() {
  return {.issuer = Issuer::warp,
          .events = {{.verb = Verb::awaits,
                      .kind = EventKind::warp,
                      .operand = "lanes",
                      .amount = Amount::number(1)}}};
}

/// `clamp` packs the segment: lanes stay within 32 - (clamp >> 8) neighbours of theirs.
Form shuffle() {
  return {.name = "shuffle",
          .doc =
              "The value of another lane: at `by` (idx), `by` below or above, or XORed with it "
              "(bfly)",
          .capability = "cuda",
          .modifiers = {{"mode", {"idx", "up", "down", "bfly"}}},
          .operands = {out(),
                       in("from"),
                       {.name = "by", .kind = OperandKind::b32, .high = 31},
                       {.name = "clamp", .kind = OperandKind::b32, .high = 0x1f1f},
                       in("lanes")},
          .ptx = "shfl.sync.<mode>.b32 $to, $from, $by, $clamp, $lanes;",
          .effects = together()};
}

Form vote(const std::string& mode) {
  return {
      .name = "vote." + mode,
      .doc = "Whether `from` is not 0 in " + std::string(mode == "any" ? "any lane" : "all lanes"),
      .capability = "cuda",
      .operands = {out(), in("from"), in("lanes")},
      .ptx = "{\n.reg .pred yes, voted;\nsetp.ne.b32 yes, $from, 0;\nvote.sync." + mode +
             ".pred voted, yes, $lanes;\nselp.b32 $to, 1, 0, voted;\n}",
      .effects = together()};
}

Form ballot() {
  return {.name = "vote.ballot",
          .doc = "A bit for each lane whose `from` is not 0",
          .capability = "cuda",
          .operands = {out(), in("from"), in("lanes")},
          .ptx =
              "{\n.reg .pred yes;\nsetp.ne.b32 yes, $from, 0;\nvote.sync.ballot.b32 $to, yes, "
              "$lanes;\n}",
          .effects = together()};
}

Form reduce() {
  return {.name = "warp.reduce",
          .doc = "One integer of the lanes' integers",
          .capability = "redux",
          .modifiers = {{"op",
                         {"add.s32", "min.s32", "max.s32", "add.u32", "min.u32", "max.u32",
                          "and.b32", "or.b32", "xor.b32"}}},
          .operands = {out(), in("from"), in("lanes")},
          .ptx = "redux.sync.<op> $to, $from, $lanes;",
          .effects = together()};
}

Form elect() {
  return {.name = "warp.elect",
          .doc = "1 in one lane of the mask, the same one every time; 0 in the others",
          .capability = "elect",
          .operands = {out("elected"), in("lanes")},
          .ptx = "{\n.reg .pred one;\nelect.sync _|one, $lanes;\nselp.b32 $elected, 1, 0, one;\n}",
          .effects = together()};
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {shuffle(), vote("any"), vote("all"),
                                        ballot(),  reduce(),    elect()};
  return all;
}

}  // namespace

namespace instructions {
extern const Family warp = {
    .name = "warp",
    .doc = "Values between the lanes of a warp",
    .section =
        "Data Movement and Conversion Instructions: shfl.sync; vote.sync; redux.sync; "
        "elect.sync",
    .forms = forms,
};
}

}  // namespace tessera::arch
