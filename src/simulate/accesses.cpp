// Accesses of memory: which bytes, and whether they may be touched now.
#include <algorithm>

#include "arch/shared_tile.h"

#include "simulate/machine.h"

namespace tessera::simulate {

using arch::Action;
using arch::Place;
using arch::Space;
using Kind = OperandCode::Kind;

std::vector<int> Machine::targets(const Call& call, int blocks_operand) {
  if (blocks_operand < 0) return {call.block};
  const int64_t mask = call.given[blocks_operand](first_lane(call.lanes));
  const int cluster = program_.kernel.cluster;
  if (mask >> cluster != 0)
    report_and_end(
        fail(bad_access, "`{}` names blocks {:#b} of its cluster", call.code->form->name, mask)
            .expect("bits 0 to {}", cluster - 1),
        call.event);
  const int first = call.block - call.block % cluster;
  std::vector<int> out;
  for (int b = 0; b < cluster; ++b)
    if ((mask >> b & 1) != 0) out.push_back(first + b);
  return out;
}

Machine::Matrix Machine::matrix(const Call& call, int operand) {
  const arch::Wgmma& w = *call.code->wgmma;
  const OperandCode& o = call.code->operands[operand];
  const core::Shared& s = program_.kernel.shared[o.storage];
  const std::vector<Mode>& modes = program_.shared[o.storage];
  const bool of_a = o.form->name == "a";
  const int transpose = [&] {
    for (std::size_t i = 0; i < call.code->operands.size(); ++i)
      if (call.code->operands[i].form->name == (of_a ? "transpose_a" : "transpose_b"))
        return static_cast<int>(call.given[i](0));
    return 0;
  }();
  // Each warp has 16 of the 64 rows of A.
  const int64_t mn = of_a ? 16 : w.n;
  const int64_t skip = of_a ? 16 * (warps_[call.warp].index % 4) : 0;
  const int64_t piece = 16 / size_of(s.element);
  Matrix out;
  out.k_contiguous = transpose == 0;
  out.rows = out.k_contiguous ? mn : w.k();
  out.pieces = (out.k_contiguous ? w.k() : mn) / piece;
  const Given& at = call.given[operand];
  // The last two modes are m or n, and k, whichever is contiguous.
  const std::size_t last = modes.size() - 1;
  const std::size_t row_mode = out.k_contiguous ? last - 1 : last;
  const std::size_t column_mode = out.k_contiguous ? last : last - 1;
  int64_t rest = 0;
  for (std::size_t i = 0; i + 1 < last; ++i) rest += modes[i](at(0, static_cast<int64_t>(i)));
  const int64_t row0 = at(0, static_cast<int64_t>(row_mode)) + (out.k_contiguous ? skip : 0);
  const int64_t column0 = at(0, static_cast<int64_t>(column_mode)) + (out.k_contiguous ? 0 : skip);
  if (row0 + out.rows > modes[row_mode].size ||
      column0 + out.pieces * piece > modes[column_mode].size)
    report_and_end(
        fail(bad_access, "operand `{}` of `{}` leaves `{}`", o.form->name, call.code->form->name,
             s.name)
            .expect("{} x {} elements from the coordinates on", out.rows, out.pieces * piece),
        call.event);
  const Swizzle swizzle = arch::swizzle_of(s.swizzle);
  for (int64_t r = 0; r < out.rows; ++r)
    for (int64_t p = 0; p < out.pieces; ++p) {
      const int64_t element =
          rest + modes[row_mode](row0 + r) + modes[column_mode](column0 + p * piece);
      out.at.push_back(swizzle(s.at + element * size_of(s.element)));
    }
  if (out.at.front() % 16 != 0)
    report_and_end(fail(bad_access, "operand `{}` of `{}` is at byte {}", o.form->name,
                        call.code->form->name, out.at.front())
                       .expect("a multiple of 16"),
                   call.event);
  return out;
}

/// Rows of the box within the tensor.
void Machine::box_ranges(const Call& call, const AccessCode& access, const Visit& visit) {
  const int map = call.code->operands[access.operand].storage;
  const core::TensorMap& m = program_.kernel.maps[map];
  const MapCode& code = program_.maps[map];
  const Given& at = call.given[call.code->operand("at")];
  const int64_t size = size_of(program_.kernel[m.tensor].element);
  const std::size_t rank = code.box.size();
  const int64_t begin = std::max<int64_t>(at(0, 0), 0);
  const int64_t end = std::min(at(0, 0) + code.box[0], code.extents[0]);
  if (begin >= end) return;
  std::vector<int64_t> c(rank, 0);
  for (;;) {
    int64_t element = begin;
    bool inside = true;
    for (std::size_t d = 1; d < rank; ++d) {
      const int64_t x = at(0, static_cast<int64_t>(d)) + c[d];
      inside = inside && x >= 0 && x < code.extents[d];
      element += x * code.strides[d];
    }
    if (inside) visit({Space::global, m.tensor.index, element * size, (end - begin) * size});
    std::size_t d = 1;
    while (d < rank && ++c[d] == code.box[d]) c[d++] = 0;
    if (d >= rank) return;
  }
}

void Machine::ranges(const Call& call, const AccessCode& access, const Visit& visit) {
  const arch::Access& a = *access.effect;
  const OperandCode& o = call.code->operands[access.operand];
  if (a.place == Place::box) return box_ranges(call, access, visit);
  if (a.place == Place::matrix) {
    for (int64_t at : matrix(call, access.operand).at) visit({Space::shared, call.block, at, 16});
    return;
  }
  const auto bytes = [&](int lane) {
    return access.bytes >= 0 ? a.bytes.times * call.given[access.bytes](lane) : access.fixed_bytes;
  };
  const auto one = [&](int lane) {
    const int64_t at = call.given[access.operand](lane);
    if (bytes(lane) == 0 || !happens(call, access, lane)) return;
    if (o.kind == Kind::global) return visit({Space::global, o.storage, at, bytes(lane)});
    for (int block : targets(call, access.blocks)) visit({Space::shared, block, at, bytes(lane)});
  };
  if (a.place == Place::once) return one(first_lane(call.lanes));
  for (uint32_t rest = call.lanes; rest != 0; rest &= rest - 1) {
    const int lane = first_lane(rest);
    if (a.place != Place::rows || lane < access.lanes) one(lane);
  }
}

void Machine::check_bounds(const Call& call, const Range& r) {
  const bool global = r.space == Space::global;
  const int64_t bytes = global ? program_.tensors[r.place].elements *
                                     size_of(program_.kernel.tensors[r.place].element)
                               : static_cast<int64_t>(blocks_[r.place].shared.size());
  if (r.begin >= 0 && r.begin + r.bytes <= bytes) return;
  report_and_end(fail(bad_access, "`{}` touches bytes {} to {} of {}", call.code->form->name,
                      r.begin, r.begin + r.bytes - 1,
                      global ? "`" + program_.kernel.tensors[r.place].name + "`" : "shared memory")
                     .expect("0 to {}", bytes - 1)
                     .help("bound the access, or mend the index"),
                 call.event);
}

/// Elements of outputs are written once; inputs never.
void Machine::write_output(const Call& call, const Range& r, bool update) {
  const core::Tensor& tensor = program_.kernel.tensors[r.place];
  if (tensor.access == core::Access::input)
    report_and_end(fail(bad_output, "`{}` writes input `{}`", call.code->form->name, tensor.name)
                       .help("make it an output or a workspace"),
                   call.event);
  if (tensor.access != core::Access::output || update) return;
  std::vector<uint8_t>& writes = tensors_[r.place].writes;
  const int64_t size = size_of(tensor.element);
  for (int64_t i = r.begin / size; i * size < r.begin + r.bytes; ++i) {
    if (++writes[i] != 2) continue;
    const uint32_t before = tensors_[r.place].shadow.last_write(i * size).event;
    report(fail(bad_output, "`{}` writes {} a second time", call.code->form->name,
                bytes_text(r, i * size))
               .expect("every element of an output is written once")
               .help("give each element to one thread of one block"),
           call.event, before);
    return;
  }
}

/// What others than the block's strands do to its shared memory must be over when it ends.
void Machine::use(int block, const Mark& by, const Strand* of) {
  Block& b = blocks_[block];
  if (b.ended)
    report_and_end(
        fail(early_exit, "shared memory of block {} is touched after the block has ended", block)
            .expect("the block stays until that is over")
            .help("wait for it before the block ends"),
        by.event);
  const uint32_t party = of == nullptr ? Mark::nobody : of->component;
  const uint32_t by_clock = of == nullptr ? 0 : of->knows.seen[party];
  b.use[{by.component, party}] = {.clock = by.clock, .by_clock = by_clock, .event = by.event};
}

/// Where mbarriers are, nothing else may be touched.
void Machine::spare_barriers(const Call& call, const Range& r) {
  if (r.begin >= program_.barriers_end || r.begin + r.bytes <= program_.barriers_begin) return;
  const core::Kernel& k = program_.kernel;
  for (std::size_t i = 0; i < k.barriers.size(); ++i)
    for (int64_t slot = 0; slot < k.barriers[i].count; ++slot) {
      const int64_t at = k.barriers[i].at + 8 * slot;
      const int64_t place = program_.first_barrier[i] + slot;
      const Barrier& b = barrier(r.place, place);
      if (!b.live || r.begin >= at + 8 || r.begin + r.bytes <= at) continue;
      report_and_end(fail(bad_barrier, "`{}` touches the bytes of {}", call.code->form->name,
                          barrier_text(r.place, place))
                         .expect("`mbarrier.inval` before the bytes are used again")
                         .help("let the storages not overlap"),
                     call.event, b.made.event);
    }
}

void Machine::touch(const Call& call, const AccessCode& access, const Range& r, const Mark& by,
                    const Knowledge& knows) {
  check_bounds(call, r);
  const Action action = access.effect->action;
  const bool global = r.space == Space::global;
  if (!global) spare_barriers(call, r);
  if (global && action != Action::read) write_output(call, r, action == Action::update);
  if (global && tensors_[r.place].bytes.empty()) return;  // an input: there from the start
  Shadow& shadow = global ? tensors_[r.place].shadow : blocks_[r.place].shadow;
  std::optional<Conflict> found;
  if (action == Action::update && !shadow.written(r.begin))
    report({Conflict::Kind::uninitialized, {}, false, r.begin}, call, access, r);
  if (action == Action::read)
    found = shadow.read(r.begin, r.bytes, by, knows);
  else
    found = shadow.write(r.begin, r.bytes, by, knows);
  if (found) report(*found, call, access, r);
}

void Machine::touch(const Call& call, const AccessCode& access, const Mark& by,
                    const Knowledge& knows) {
  const arch::Access& a = *access.effect;
  if (a.space == Space::registers || a.proxy == arch::Proxy::tensormap) return;
  if (call.code->operands[access.operand].kind == Kind::barrier) return make_barriers(call, by);
  if (by.async && a.space != Space::global)
    for (int block : targets(call, access.blocks)) use(block, by);
  std::vector<Range> seen;
  const bool apart = a.place == Place::lanes || a.place == Place::rows;
  ranges(call, access, [&](const Range& r) {
    touch(call, access, r, by, knows);
    if (apart && a.action != Action::read && !by.atomic) seen.push_back(r);
  });
  std::sort(seen.begin(), seen.end(),
            [](const Range& x, const Range& y) { return x.begin < y.begin; });
  for (std::size_t i = 1; i < seen.size(); ++i)
    if (seen[i - 1].place == seen[i].place &&
        seen[i - 1].begin + seen[i - 1].bytes > seen[i].begin) {
      report(fail(race, "two lanes of one `{}` write {}", call.code->form->name,
                  bytes_text(seen[i], seen[i].begin))
                 .expect("bytes of its own for each lane"),
             call.event);
      return;
    }
}

}  // namespace tessera::simulate
