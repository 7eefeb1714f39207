#include "tile/dot_plan.h"

#include <algorithm>
#include <set>

namespace tessera::tile {
namespace {

/// The instruction's modes along its two axes.
std::vector<SpreadMode> modes_of(const Layout& mode, int64_t first_extent) {
  const std::vector<int64_t> extents = flatten(mode.shape());
  const std::vector<int64_t> strides = flatten(mode.stride());
  std::vector<SpreadMode> out;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const bool first = strides[i] < first_extent;
    out.push_back({extents[i], first ? 0 : 1, first ? strides[i] : strides[i] / first_extent});
  }
  return out;
}

tl::unexpected<Diagnostic> no(const arch::Mma& by, const Type& t, std::string_view why) {
  return error(fail(unsupported, "{} does not take {}: {}", by.name, to_string(t), why)
                   .note("its layout is {}", to_string(t.layout)));
}

struct Registers {
  std::vector<Digit> axis[2];
};

Registers registers_of(const Type& t) {
  Registers r;
  int64_t weight = 1;
  for (const SpreadMode& m : spread(t).registers) {
    if (m.axis >= 0) r.axis[m.axis].push_back({m.extent, m.step, weight});
    weight *= m.extent;
  }
  return r;
}

/// Takes a digit of `extent` from the front of the first of `from` that has it and this step (any
/// when 0).
bool take(std::vector<Digit>& from, int64_t extent, int64_t step, std::vector<Digit>& to) {
  for (auto it = from.begin(); it != from.end(); ++it) {
    if (it->extent % extent != 0 || (step != 0 && it->step != step)) continue;
    to.push_back({extent, it->step, it->weight});
    it->extent /= extent, it->step *= extent, it->weight *= extent;
    if (it->extent == 1) from.erase(it);
    return true;
  }
  return false;
}

/// The lane's modes of a value, when they walk the same axes as the instruction's; what is beyond
/// them must walk axis 0.
Result<std::vector<SpreadMode>> lanes(const arch::Mma& by, const Type& t, const Layout& fragment,
                                      int64_t first_extent) {
  const std::vector<SpreadMode> want = modes_of(fragment.mode(0), first_extent);
  std::vector<SpreadMode> have = spread(t).threads;
  if (have.size() < want.size()) return no(by, t, "too few threads");
  for (std::size_t i = 0; i < have.size(); ++i) {
    const bool fits = i < want.size()
                          ? have[i].axis == want[i].axis && have[i].extent == want[i].extent
                          : have[i].axis == 0;
    if (!fits) return no(by, t, "its threads walk other axes than the instruction's lanes");
  }
  return have;
}

struct Memory2 {
  int64_t k = 0, n = 0;
};

Result<Memory2> strides_of(const arch::Mma& by, const Type& b, bool transposed) {
  std::vector<int64_t> s;
  for (int m = 0; m < b.layout.rank(); ++m) {
    const std::vector<int64_t> flat = flatten(coalesce(b.layout.mode(m)).stride());
    if (flat.size() != 1) return no(by, b, "an axis has more than one stride");
    s.push_back(flat[0]);
  }
  if (b.space != Space::shared || s.size() != 2) return no(by, b, "it is not in shared memory");
  return transposed ? Memory2{s[1], s[0]} : Memory2{s[0], s[1]};
}

/// The widest read of one lane: digits whose places follow each other, up to 16 bytes. The outer
/// ones leave the loops.
void find_vector(DotPlan& p, int64_t element_bytes) {
  int64_t width = 1;
  const int64_t most = 16 / element_bytes;
  auto next = [&](std::vector<Digit>& from, bool leaves) {
    for (auto it = from.begin(); it != from.end(); ++it) {
      if (it->memory != width) continue;
      int64_t extent = it->extent;
      while (width * extent > most && extent % 2 == 0) extent /= 2;
      if (extent == 1 || width * extent > most) continue;
      p.vector.push_back({extent, it->step, it->weight, it->memory});
      if (!leaves && extent != it->extent) return false;
      width *= extent;
      if (leaves) {
        it->extent /= extent, it->step *= extent, it->weight *= extent, it->memory *= extent;
        if (it->extent == 1) from.erase(it);
      }
      return true;
    }
    return false;
  };
  while (width < most &&
         (next(p.k_inner, false) || next(p.k_outer, true) || next(p.n_outer, true))) {
  }
  p.vector_elements = width;
}

/// 8 x 8 matrices of 16-bit elements whose columns are contiguous: a row an address, transposed on
/// the way. Two steps of n in one read where there are two.
Status find_transposed(DotPlan& p, const Type& b, const Memory2& stride) {
  const arch::Mma& by = *p.by;
  bool fits = stride.n == 1 && p.lane.size() == 2 && p.lane[1].step == 1 && p.k_inner.size() == 2;
  if (!fits) return no(by, b, "pairs along k are not contiguous, nor are columns");
  p.transposed_rows = true;
  p.vector = {p.k_inner[1]};
  for (auto it = p.n_outer.begin(); it != p.n_outer.end(); ++it) {
    if (it->extent % 2 != 0) continue;
    p.vector.push_back({2, it->step, it->weight, it->memory});
    it->extent /= 2, it->step *= 2, it->weight *= 2, it->memory *= 2;
    if (it->extent == 1) p.n_outer.erase(it);
    break;
  }
  p.vector_elements = 8;
  return {};
}

}  // namespace

int64_t lane_place(const std::vector<Digit>& modes, int64_t lane) {
  int64_t at = 0;
  for (const Digit& d : modes) {
    at += lane % d.extent * d.memory;
    lane /= d.extent;
  }
  return at;
}

Result<DotPlan> plan_dot(const arch::Mma& by, const Type& a, const Type& b, bool b_transposed,
                         const Type& c) {
  DotPlan p;
  p.by = &by;
  if (by.a_from != arch::Feed::registers || by.b_from != arch::Feed::shared)
    if (by.b_from == arch::Feed::shared) return no(by, b, "it reads descriptors");
  TESSERA_TRY(a_lanes, lanes(by, a, by.a, by.m));
  TESSERA_TRY(c_lanes, lanes(by, c, by.c, by.m));
  TESSERA_TRY(stride, strides_of(by, b, b_transposed));
  for (std::size_t i = 0; i < std::max(a_lanes.size(), c_lanes.size()); ++i)
    if (a_lanes.size() != c_lanes.size() || a_lanes[i].axis != c_lanes[i].axis ||
        (a_lanes[i].axis == 0 && a_lanes[i] != c_lanes[i]))
      return no(by, c, "its rows lie in other lanes than those of the first operand");
  Registers ra = registers_of(a);
  Registers rc = registers_of(c);
  for (const SpreadMode& m : modes_of(by.a.mode(1), by.m)) {
    if (!take(ra.axis[m.axis], m.extent, 0, m.axis == 0 ? p.m_inner : p.k_inner))
      return no(by, a, "its registers do not fill the instruction");
  }
  // Columns of one lane follow those of its neighbours, so that B's lanes are linear in n.
  const int64_t pair = c_lanes[0].step / modes_of(by.c.mode(0), by.m)[0].step;
  for (const SpreadMode& m : modes_of(by.c.mode(1), by.m)) {
    if (!take(rc.axis[m.axis], m.extent, m.axis == 0 ? 0 : pair,
              m.axis == 0 ? p.m_inner_c : p.n_inner))
      return no(by, c, "its registers do not fill the instruction");
  }
  auto same_rows = [](const std::vector<Digit>& x, const std::vector<Digit>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Digit& i, const Digit& j) {
      return i.extent == j.extent && i.step == j.step;
    });
  };
  p.m_outer = ra.axis[0], p.m_outer_c = rc.axis[0];
  if (!same_rows(p.m_inner, p.m_inner_c) || !same_rows(p.m_outer, p.m_outer_c))
    return no(by, c, "its registers walk other rows than those of the first operand");
  p.k_outer = ra.axis[1], p.n_outer = rc.axis[1];
  for (auto* digits : {&p.k_inner, &p.k_outer})
    for (Digit& d : *digits) d.memory = d.step * stride.k;
  for (auto* digits : {&p.n_inner, &p.n_outer})
    for (Digit& d : *digits) d.memory = d.step * stride.n;
  // B's lanes: the instruction's k mode steps as A's lanes do, its n mode by C's pair.
  for (const SpreadMode& m : modes_of(by.b.mode(0), by.n)) {
    const int64_t step = m.axis == 1 ? a_lanes[0].step : pair * m.step;
    p.lane.push_back({m.extent, step, 0, step * (m.axis == 1 ? stride.k : stride.n)});
  }
  p.lane_k = {{a_lanes[0].extent, a_lanes[0].step, 0, a_lanes[0].step}};
  if (by.per_register == 2 && p.k_inner[0].memory != 1) {
    TESSERA_CHECK(find_transposed(p, b, stride));
  } else {
    find_vector(p, size_of(b.element));
  }
  return p;
}

int64_t read_conflicts(const DotPlan& p, int64_t element_bytes) {
  // Places, in elements, of the lanes of one phase; each reads `words` words there.
  const int64_t words = std::max<int64_t>(p.vector_elements * element_bytes / 4, 1);
  const int64_t together = p.transposed_rows ? 8 : 32 / words;
  int64_t worst = 1;
  for (int64_t first = 0; first < 32; first += together) {
    std::vector<std::set<int64_t>> banks(32);
    for (int64_t lane = first; lane < first + together; ++lane) {
      // ldmatrix: lane l of a matrix gives row l, which is pair l % 2 of the lanes' digit l / 2.
      const int64_t at = p.transposed_rows
                             ? lane % 2 * p.k_inner[0].memory + lane / 2 % 4 * p.lane[0].memory
                             : lane_place(p.lane, lane);
      for (int64_t w = 0; w < words; ++w) {
        const int64_t word = at * element_bytes / 4 + w;
        banks[word % 32].insert(word);
      }
    }
    for (const auto& b : banks) worst = std::max(worst, static_cast<int64_t>(b.size()));
  }
  return worst;
}

}  // namespace tessera::tile
