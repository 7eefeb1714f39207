// Text, loops, coordinates and addresses: what both targets share.
#include "tile/emit.h"

#include <numeric>
#include <stdexcept>

#include "tile/op_record.h"
#include "tile/payload.h"

namespace tessera::tile {

void Emitter::line(const std::string& text) {
  if (!text.empty())
    out += (text[0] == '#' ? "" : std::string(std::size_t{2} * depth, ' ')) + text + "\n";
}
void Emitter::open(const std::string& head) {
  line(head);
  ++depth;
}
void Emitter::close(const std::string& tail) {
  --depth;
  line(tail);
}

std::string Emitter::live(const Axis& axis) const {
  if (!axis.var.valid() || var(axis.var).total % var(axis.var).step == 0)
    return std::to_string(axis.extent);
  return "live_" + position(axis.var);
}

std::string Emitter::position(VarId v) const {
  auto it = standing_.find(v.index);
  return it == standing_.end() ? var(v).name : it->second;
}

std::string Emitter::count(VarId id) const {
  const TileVar& v = var(id);
  if (!v.until_var.valid()) return std::to_string(v.count());
  return fmt::format("tst_clamp(((long({}) + 1) * {} + {}) / {}, 0, {})", var(v.until_var).name,
                     var(v.until_var).step, v.until_offset + v.step - 1, v.step, v.count());
}

void Emitter::declare_live(VarId id) {
  const TileVar& v = var(id);
  if (v.total % v.step != 0)
    line(fmt::format("const tst_index live_{0} = tst_min({1}, {2} - {0} * {1});", position(id),
                     v.step, v.total));
}

bool Emitter::always_live(const Type& t, int axis) const {
  const Axis& a = t.axes[axis];
  bool cut = a.var.valid() && var(a.var).total % var(a.var).step != 0;
  return !cut && t.cover[axis] == a.extent;
}

std::string Emitter::coordinate(const Type& t, int axis) const {
  std::string s;
  auto plus = [&](const std::string& term) { s += (s.empty() ? "" : " + ") + term; };
  int64_t below = 1;
  for (const SpreadMode& m : spread(t).threads) {
    if (m.axis == axis) {
      bool top = below * m.extent >= kernel->threads;
      std::string at = below == 1 ? "thread" : fmt::format("thread / {}", below);
      if (!top) at += fmt::format(" % {}", m.extent);
      plus(m.step == 1 ? (top && below == 1 ? at : "(" + at + ")")
                       : fmt::format("({}) * {}", at, m.step));
    }
    below *= m.extent;
  }
  for (const Loop& l : loops)
    if (l.mode.axis == axis && l.name != "0")
      plus(l.mode.step == 1 ? l.name : fmt::format("{} * {}", l.name, l.mode.step));
  return s.empty() ? "0" : s;
}

std::string Emitter::predicate(const Type& t) const {
  std::string s;
  for (int a = 0; a < static_cast<int>(t.axes.size()); ++a)
    if (!always_live(t, a))
      s += fmt::format("{}{} < {}", s.empty() ? "" : " && ", coordinate(t, a), live(t.axes[a]));
  return s;
}

Result<std::string> Emitter::reg(const Type& t) const {
  std::string s;
  int64_t weight = 1;
  for (const SpreadMode& m : spread(t).registers) {
    std::string name;
    for (const Loop& l : loops)
      if (l.mode == m) name = l.name;
    if (name.empty())
      return error(fail(unsupported, "the registers of {} do not follow the loop's", to_string(t))
                       .note("its layout is {}", to_string(t.layout))
                       .help("give both tiles the same register modes"));
    if (name != "0")
      s += fmt::format("{}{}", s.empty() ? "" : " + ",
                       weight == 1 ? name : fmt::format("{} * {}", name, weight));
    weight *= m.extent;
  }
  return s.empty() ? "0" : s;
}

std::string Emitter::tensor(ValueId view) const {
  return program->tensors[views.at(view.index)->payload.get<ViewOf>().tensor].name;
}
DType Emitter::tensor_element(ValueId view) const {
  return program->tensors[views.at(view.index)->payload.get<ViewOf>().tensor].element;
}

namespace {
/// Σ stride * digit of one mode's index; the last digit needs no remainder.
std::string offset_text(const Layout& mode, const std::string& index) {
  Layout flat = coalesce(mode);
  std::vector<int64_t> extents = flatten(flat.shape());
  std::vector<int64_t> strides = flatten(flat.stride());
  std::string s;
  int64_t below = 1;
  for (std::size_t i = 0; i < extents.size(); below *= extents[i], ++i) {
    if (strides[i] == 0 || extents[i] == 1) continue;
    std::string digit = "(" + index + ")";
    if (below > 1) digit += fmt::format(" / {}", below);
    if (i + 1 < extents.size()) digit += fmt::format(" % {}", extents[i]);
    if (strides[i] != 1) digit = fmt::format("({}) * {}", digit, strides[i]);
    s += (s.empty() ? "" : " + ") + digit;
  }
  return s;
}
}  // namespace

std::string Emitter::address(ValueId view, const std::vector<Index>& indices,
                             const Type& tile) const {
  const auto& of = views.at(view.index)->payload.get<ViewOf>();
  std::string s = of.offset == 0 ? "" : std::to_string(of.offset);
  int axis = 0;
  for (std::size_t m = 0; m < indices.size(); ++m) {
    const Index& i = indices[m];
    std::string at;
    if (i.kind != Index::Kind::all) {
      const TileVar& v = var(i.var);
      at = v.step == 1 ? position(i.var) : fmt::format("{} * {}", position(i.var), v.step);
    }
    if (i.kind != Index::Kind::pick) {
      std::string c = coordinate(tile, axis++);
      if (c != "0" || at.empty()) at += (at.empty() ? "" : " + ") + c;
    }
    std::string term = offset_text(of.layout.mode(static_cast<int>(m)), at);
    if (!term.empty()) s += (s.empty() ? "" : " + ") + term;
  }
  return s.empty() ? "0" : s;
}

int64_t Emitter::vector_width(ValueId view, const std::vector<Index>& indices, const Type& t,
                              bool* repeated) const {
  const auto& of = views.at(view.index)->payload.get<ViewOf>();
  Spread s = spread(t);
  int last = static_cast<int>(t.axes.size()) - 1;
  if (s.registers.empty() || s.registers[0].axis != last || s.registers[0].step != 1) return 1;
  if (indices.empty() || indices.back().kind == Index::Kind::pick) return 1;
  int64_t common = std::gcd(s.registers[0].extent, 16 / size_of(tensor_element(view)));
  auto divides = [&](int64_t n) { common = std::gcd(common, n); };
  Layout innermost = coalesce(of.layout.mode(of.layout.rank() - 1));
  bool same = repeated != nullptr && flatten(innermost.stride())[0] == 0;
  if (repeated != nullptr) *repeated = same;
  if (same && flatten(innermost.shape()).size() > 1) divides(flatten(innermost.shape())[0]);
  if (!same) divides(of.offset);
  for (std::size_t m = 0; m < indices.size() && !same; ++m) {
    Layout mode = coalesce(of.layout.mode(static_cast<int>(m)));
    std::vector<int64_t> extents = flatten(mode.shape());
    std::vector<int64_t> strides = flatten(mode.stride());
    bool inner = m + 1 == indices.size();
    if (inner && strides[0] != 1) return 1;
    if (inner) divides(extents[0]);
    for (std::size_t i = inner ? 1 : 0; i < strides.size(); ++i) divides(strides[i]);
  }
  for (const auto& modes : {s.threads, s.registers})
    for (const SpreadMode& m : modes)
      if (m.axis == last && m.step != 1) divides(m.step);
  for (const SpreadMode& m : s.threads)
    if (m.axis == last && m.step == 1) return 1;
  divides(t.axes[last].extent);
  if (t.axes[last].var.valid())
    divides(var(t.axes[last].var).total), divides(var(t.axes[last].var).step);
  return std::max<int64_t>(common, 1);
}

void Emitter::open_registers(const Type& t, int64_t run) {
  std::vector<SpreadMode> modes = spread(t).registers;
  loops.clear();
  int64_t weight = 1;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    loops.insert(loops.begin(), Loop{fmt::format("i{}", i), modes[i], weight});
    weight *= modes[i].extent;
  }
  for (std::size_t k = 0; k < loops.size(); ++k) {
    Loop& l = loops[k];
    int64_t by = k + 1 == loops.size() ? run : 1;
    if (by == l.mode.extent) {
      l.name = "0";
      continue;
    }
    line("#pragma unroll");
    open(fmt::format("for (int {0} = 0; {0} < {1}; {2}) {{", l.name, l.mode.extent,
                     by == 1 ? "++" + l.name : fmt::format("{} += {}", l.name, by)));
  }
}

void Emitter::close_registers() {
  for (const Loop& l : loops)
    if (l.name != "0") close();
  loops.clear();
}

Status Emitter::kernel_text(const Kernel& k) {
  kernel = &k;
  views.assign(k.values.size(), nullptr);
  arrays_.assign(k.values.size(), "");
  last_use_.assign(k.values.size(), 0);
  born_.assign(k.values.size(), 0);
  clock_of_.clear();
  home_.assign(k.values.size(), nullptr);
  pinned_.assign(k.values.size(), false);
  read_again_.clear();
  grid_tiles = 1;
  grid_blocks_per_multiprocessor = 0;
  shared_bytes = 0;
  standing_.clear();
  int clock = 0;
  find_last_uses(k.body, clock);
  return region(k.body);
}

}  // namespace tessera::tile
