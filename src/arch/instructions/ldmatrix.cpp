#include "arch/ldmatrix.h"

namespace tessera::arch {
namespace {

Form make(bool stores, bool transposed) {
  const Operand registers{.name = stores ? "from" : "to",
                          .direction = stores ? Direction::in : Direction::out,
                          .registers = Amount::modifier("matrices")};
  const Operand address{
      .name = stores ? "to" : "from", .kind = OperandKind::shared, .alignment = 16};
  Form f;
  f.name = std::string(stores ? "stmatrix" : "ldmatrix") + (transposed ? ".trans" : "");
  f.doc = std::string("Matrices of 8 x 8 16-bit elements ") +
          (stores ? "to shared memory, " : "from shared memory, ") +
          (transposed ? "a register's two elements from two rows" : "from one row") +
          "; each row at its lane's address";
  f.capability = stores ? "stmatrix" : "ldmatrix";
  f.modifiers = {{"matrices", {"1", "2", "4"}}};
  f.operands =
      stores ? std::vector<Operand>{address, registers} : std::vector<Operand>{registers, address};
  f.ptx = std::string(stores ? "stmatrix" : "ldmatrix") + ".sync.aligned.m8n8.x<matrices>" +
          (transposed ? ".trans" : "") +
          (stores ? ".shared.b16 [$to], $from;" : ".shared.b16 $to, [$from];");
  f.effects = {.issuer = Issuer::warp,
               .accesses = {{.action = stores ? Action::write : Action::read,
                             .space = Space::shared,
                             .proxy = Proxy::generic,
                             .operand = address.name,
                             .place = Place::rows,
                             .bytes = Amount::number(16),
                             .lanes = Amount::modifier("matrices", 8)}}};
  return f;
}

std::span<const Form> forms() {
  static const std::vector<Form> all = {make(false, false), make(false, true), make(true, false),
                                        make(true, true)};
  return all;
}

}  // namespace

Layout MatrixMove::lane_of_row() const {
  return Layout::column_major(IntTuple::flat({8, matrices}));
}

Layout MatrixMove::elements() const {
  const IntTuple shape = IntTuple::tuple({IntTuple::flat({4, 8}), IntTuple::flat({2, matrices})});
  return transposed
             ? Layout(shape, IntTuple::tuple({IntTuple::flat({16, 1}), IntTuple::flat({8, 64})}))
             : Layout(shape, IntTuple::tuple({IntTuple::flat({2, 8}), IntTuple::flat({1, 64})}));
}

const Form& MatrixMove::form() const {
  return *find_form(std::string(stores ? "stmatrix" : "ldmatrix") + (transposed ? ".trans" : ""));
}

namespace instructions {
extern const Family ldmatrix = {
    .name = "ldmatrix",
    .doc = "Matrices of 8 x 8 16-bit elements between shared memory and a warp's registers",
    .section = "Warp Level Matrix Instructions: ldmatrix, stmatrix",
    .forms = forms,
};
}

}  // namespace tessera::arch
