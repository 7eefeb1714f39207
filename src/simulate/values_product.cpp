// Products of matrices: wgmma, of which each warp computes the 16 rows that its registers hold, and
// mma.sync. Sums are kept in double and rounded once an instruction, to the accumulator's type.
#include <algorithm>

#include "arch/mma.h"

#include "simulate/domain.h"
#include "simulate/machine.h"
#include "simulate/value_families.h"

namespace tessera::simulate {
namespace {

using arch::Element;

template <class Values>
using Sums = std::vector<typename Values::Value>;

/// [k][mn] of an operand in shared memory.
template <class Values>
Sums<Values> from_shared(Values values, Call& call, int operand, Element e, int64_t mn, int64_t k) {
  const Machine::Matrix m = call.machine->matrix(call, operand);
  const int64_t size = arch::bytes_of(e);
  const int64_t piece = 16 / size;
  Sums<Values> out(static_cast<std::size_t>(mn * k));
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t p = 0; p < m.pieces; ++p) {
      const uint8_t* bytes =
          call.machine->read_memory(arch::Space::shared, call.block, m.at[r * m.pieces + p]);
      for (int64_t i = 0; i < piece; ++i) {
        const int64_t across = p * piece + i;
        const int64_t at = m.k_contiguous ? across * mn + r : r * mn + across;
        out[at] = values.operand(e, bytes + call.machine->held(i * size));
      }
    }
  return out;
}

/// [k][16] of A in the warp's registers.
template <class Values>
Sums<Values> from_registers(Values values, Call& call, int operand, const arch::Wgmma& w) {
  const Layout layout = w.a_layout();
  Sums<Values> out(static_cast<std::size_t>(16 * w.k()));
  const int64_t elements = 4 * w.a_per_register();
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < elements; ++e) {
      const int64_t place = layout(lane + 128 * e);
      out[place / 64 * 16 + place % 64] =
          values.operand(w.a, call.machine->read_registers(call, operand, lane, e));
    }
  return out;
}

double scale(const Call& call, std::string_view name) {
  for (std::size_t i = 0; i < call.code->operands.size(); ++i)
    if (call.code->operands[i].form->name == name) return static_cast<double>(call.given[i](0));
  return 1;
}

template <class Values>
void wgmma(Call& call, Values values) {
  const arch::Wgmma& w = *call.code->wgmma;
  const int d = call.code->operand("d");
  const int a = call.code->operand("a");
  const bool accumulate = call.given[call.code->operand("accumulate")](0) != 0;
  const Sums<Values> x = w.a_from == arch::Feed::shared
                             ? from_shared(values, call, a, w.a, 16, w.k())
                             : from_registers(values, call, a, w);
  const Sums<Values> y = from_shared(values, call, call.code->operand("b"), w.b, w.n, w.k());
  Sums<Values> sums(static_cast<std::size_t>(16 * w.n), values.integer(0));
  values.add_product(sums, x, y, w.k(), w.n);
  const double sign = scale(call, "scale_a") * scale(call, "scale_b");
  const DType type = arch::storage_of(w.c);
  const std::vector<int32_t>& places = call.code->sums;
  const int64_t elements = w.n / 2;
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < elements; ++e) {
      const int32_t place = places[e * 32 + lane];
      auto v = values.scaled(sign, sums[place % 64 * w.n + place / 64]);
      if (accumulate)
        v = values.add(v, values.decode(type, call.machine->read_registers(call, d, lane, e)));
      values.encode(type, w.saturating ? values.saturated(v) : v,
                    call.machine->write_registers(call, d, lane, e));
    }
}

template <class Values>
void mma_sync(Call& call, Values values) {
  const std::vector<arch::MmaSync> kinds = arch::mma_sync_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(), [&](const arch::MmaSync& m) {
    return &m.form() == call.code->form;
  });
  const arch::MmaSync& m = *found;
  const auto matrix = [&](std::string_view name, Element e, const Layout& layout, int64_t rows,
                          int64_t elements) {
    Sums<Values> out(static_cast<std::size_t>(rows * m.k));  // [k][row]
    const int operand = call.code->operand(name);
    for (int lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < elements; ++i)
        out[layout(lane + 32 * i)] =
            values.operand(e, call.machine->read_registers(call, operand, lane, i));
    return out;
  };
  const Sums<Values> a = matrix("a", m.a, m.a_layout(), 16, m.k / 2);
  const Sums<Values> b = matrix("b", m.b, m.b_layout(), 8, m.k / 4);
  Sums<Values> sums(std::size_t{16} * 8, values.integer(0));
  values.add_product(sums, a, b, m.k, 8);
  const DType type = arch::storage_of(m.c);
  const Layout layout = arch::MmaSync::c_layout();
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < 4; ++e) {
      const int64_t place = layout(lane + 32 * e);
      const auto before =
          values.decode(type, call.machine->read_registers(call, call.code->operand("c"), lane, e));
      const auto v = values.add(before, sums[place % 16 * 8 + place / 16]);
      values.encode(type, m.saturating ? values.saturated(v) : v,
                    call.machine->write_registers(call, call.code->operand("d"), lane, e));
    }
}

/// Of a matrix in shared memory, the warp's 16 rows of A, or all of B.
std::vector<TagId> tags_of_shared(Call& call, int operand, int64_t mn) {
  const Machine::Matrix m = call.machine->matrix(call, operand);
  const int storage = call.code->operands[operand].storage;
  const int64_t size = size_of(call.machine->program().kernel.shared[storage].element);
  std::vector<TagId> out(static_cast<std::size_t>(mn), 0);
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t p = 0; p < m.pieces; ++p)
      for (int64_t i = 0; i < 16 / size; ++i) {
        TagId& to = out[static_cast<std::size_t>(m.k_contiguous ? r : p * (16 / size) + i)];
        to = call.machine->tags().join(
            to, call.machine->memory_tag(arch::Space::shared, call.block,
                                         m.at[r * m.pieces + p] + i * size, size));
      }
  return out;
}

/// A sum carries what all elements carry that are multiplied and added up in it.
void wgmma_tags(Call& call) {
  const arch::Wgmma& w = *call.code->wgmma;
  Machine& machine = *call.machine;
  const int a = call.code->operand("a"), d = call.code->operand("d");
  std::vector<TagId> rows(16, 0);
  if (w.a_from == arch::Feed::shared) {
    rows = tags_of_shared(call, a, 16);
  } else {
    const Layout layout = w.a_layout();
    for (int lane = 0; lane < 32; ++lane)
      for (int64_t e = 0; e < 4 * w.a_per_register(); ++e) {
        TagId& to = rows[static_cast<std::size_t>(layout(lane + 128 * e) % 64)];
        to = machine.tags().join(to, machine.register_tag(call, a, lane, e));
      }
  }
  const std::vector<TagId> columns = tags_of_shared(call, call.code->operand("b"), w.n);
  const bool accumulate = call.given[call.code->operand("accumulate")](0) != 0;
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < w.n / 2; ++e) {
      const int32_t place = call.code->sums[e * 32 + lane];
      TagId tag = machine.tags().join(rows[static_cast<std::size_t>(place % 64)],
                                      columns[static_cast<std::size_t>(place / 64)]);
      if (accumulate) tag = machine.tags().join(tag, machine.register_tag(call, d, lane, e));
      machine.set_register_tag(call, d, lane, e, tag);
    }
}

void mma_tags(Call& call) {
  const std::vector<arch::MmaSync> kinds = arch::mma_sync_kinds();
  const arch::MmaSync& m = *std::find_if(kinds.begin(), kinds.end(), [&](const arch::MmaSync& k) {
    return &k.form() == call.code->form;
  });
  Machine& machine = *call.machine;
  const auto side = [&](std::string_view name, const Layout& layout, int64_t rows,
                        int64_t elements) {
    std::vector<TagId> out(static_cast<std::size_t>(rows), 0);
    for (int lane = 0; lane < 32; ++lane)
      for (int64_t i = 0; i < elements; ++i) {
        TagId& to = out[static_cast<std::size_t>(layout(lane + 32 * i) % rows)];
        to = machine.tags().join(to, machine.register_tag(call, call.code->operand(name), lane, i));
      }
    return out;
  };
  const std::vector<TagId> a = side("a", m.a_layout(), 16, m.k / 2);
  const std::vector<TagId> b = side("b", m.b_layout(), 8, m.k / 4);
  const Layout layout = arch::MmaSync::c_layout();
  for (int lane = 0; lane < 32; ++lane)
    for (int64_t e = 0; e < 4; ++e) {
      const int64_t place = layout(lane + 32 * e);
      const TagId tag = machine.tags().join(a[static_cast<std::size_t>(place % 16)],
                                            b[static_cast<std::size_t>(place / 16)]);
      machine.set_register_tag(
          call, call.code->operand("d"), lane, e,
          machine.tags().join(tag, machine.register_tag(call, call.code->operand("c"), lane, e)));
    }
}

}  // namespace

std::span<const Semantics> product_values() {
  static constexpr Semantics all[] = {
      {"wgmma.", [](Call& c) { with_values(c.machine->program(), [&](auto v) { wgmma(c, v); }); },
       nullptr, false, wgmma_tags},
      {"mma.", [](Call& c) { with_values(c.machine->program(), [&](auto v) { mma_sync(c, v); }); },
       nullptr, false, mma_tags},
  };
  return all;
}

}  // namespace tessera::simulate
