#include "tile/emit_dot.h"

#include <algorithm>

#include "tile/dot_plan.h"
#include "tile/payload.h"

namespace tessera::tile {
namespace {

const Product& product(const Op& op) {
  return op.payload.get<Product>();
}

/// All values of some digits, the first fastest, as the sum of what `of` gives for each.
std::vector<int64_t> all(const std::vector<Digit>& digits, int64_t Digit::* of) {
  std::vector<int64_t> out = {0};
  for (const Digit& d : digits) {
    const std::vector<int64_t> below = out;
    for (int64_t i = 1; i < d.extent; ++i)
      for (int64_t b : below) out.push_back(b + i * (d.*of));
  }
  return out;
}

std::string plus(const std::string& a, const std::string& b) {
  return a.empty() || a == "0" ? b : b.empty() || b == "0" ? a : a + " + " + b;
}

class Writer {
 public:
  Writer(Emitter& e, const Op& op, const DotPlan& p)
      : e_(e),
        p_(p),
        product_(product(op)),
        a_(e.type(op.operands[0])),
        a_name_(e.array(op.operands[0])),
        a_value_(e.name(op.operands[0])),
        c_name_(e.array(op.results[0])),
        b_(e.type(op.operands[1])),
        ring_(e.views.at(op.operands[1].index)->payload.get<Ring>()),
        b_name_(e.name(op.operands[1])) {
    // Outer digits inside the read are unrolled in the text; the others are loops.
    for (const Digit& d : p.vector) {
      if (contains(p.k_inner, d)) continue;
      (is_n(d) ? n_read_ : k_read_).push_back(d);
    }
  }

  Status write() {
    e_.open("{");
    pointer();
    if (product_.a_fragment) a_pointer();
    loops(p_.k_outer, "k");
    fragments();
    loops(p_.n_outer, "n");
    reads();
    instructions();
    for (std::size_t i = 0; i < p_.n_outer.size() + p_.k_outer.size(); ++i) e_.close();
    e_.close();
    return {};
  }

 private:
  static bool contains(const std::vector<Digit>& all, const Digit& d) {
    return std::any_of(all.begin(), all.end(), [&](const Digit& x) {
      return x.memory == d.memory && x.step == d.step && x.weight == d.weight;
    });
  }
  // A digit that left the loops of n; what steps by whole rows of n is no digit of k.
  [[nodiscard]] bool is_n(const Digit& d) const {
    const int64_t n_stride = p_.lane[1].memory / p_.lane[1].step;
    const int64_t k_stride = p_.lane[0].memory / p_.lane[0].step;
    return n_stride != k_stride && d.memory == d.step * n_stride;
  }
  [[nodiscard]] bool split() const { return product_.terms == 3; }
  [[nodiscard]] bool narrow() const { return p_.by->per_register == 2; }

  void pointer() {
    std::string at;
    int64_t below = 1;
    auto lane = [&](int64_t extent, int64_t memory) {
      at = plus(at, fmt::format("thread / {} % {} * {}", below, extent, memory));
      below *= extent;
    };
    if (p_.transposed_rows) {
      lane(2, p_.k_inner[0].memory);
      lane(p_.lane[0].extent, p_.lane[0].memory);
      for (const Digit& d : p_.vector) lane(d.extent, d.memory);
    } else {
      for (const Digit& d : p_.lane) lane(d.extent, d.memory);
    }
    if (ring_.slots > 1)
      at = plus(
          fmt::format("{} % {} * {}", e_.position(ring_.ring), ring_.slots, ring_.slot_elements()),
          at);
    e_.line(fmt::format("const auto mma_at = {} + ({});", b_name_, at));
  }

  [[nodiscard]] int64_t a_row() const { return flatten(coalesce(a_.layout.mode(0)).stride())[0]; }
  void a_pointer() {
    std::string at;
    int64_t below = 1;
    for (const SpreadMode& m : spread(*product_.a_fragment).threads) {
      at = plus(at, fmt::format("thread / {} % {} * {}", below, m.extent,
                                m.step * (m.axis == 0 ? a_row() : 1)));
      below *= m.extent;
    }
    e_.line(fmt::format("const auto mma_a_at = {} + ({});", a_value_, at));
  }
  /// The same from shared memory: one read a row, which has the slots of k in B's order.
  void read_fragments(const std::vector<int64_t>& steps) {
    const std::vector<int64_t> k_places = all(k_read_, &Digit::memory);
    std::vector<Digit> rows = p_.m_inner;
    rows.insert(rows.end(), p_.m_outer.begin(), p_.m_outer.end());
    const std::vector<int64_t> places = all(rows, &Digit::step);
    const int64_t inner = p_.m_inner[0].extent;
    e_.line(fmt::format("uint32_t mma_q[{}];", read_words()));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const int64_t r = static_cast<int64_t>(i) / inner;
      e_.line(
          fmt::format("tst_read<{}>(mma_q, {});", read_words(),
                      plus("mma_a_at", sum(p_.k_outer, "k", &Digit::memory, places[i] * a_row()))));
      for (std::size_t s = 0; s < steps.size(); ++s)
        for (int64_t e = 0; e < p_.k_inner.back().extent; ++e) {
          const int64_t slot = static_cast<int64_t>(i) % inner + inner * e;
          const std::string to = fmt::format("mma_a[{}][{}][{}]", s, r, slot);
          const std::string from = fmt::format("mma_q[{}]", word(e, k_places[s], 0));
          if (split())
            e_.line(fmt::format("tst_split_tf32(tst_from_bits({}), {}, mma_a_low[{}][{}][{}]);",
                                from, to, s, r, slot));
          else
            e_.line(narrow() || product_.a_rounded
                        ? fmt::format("{} = {};", to, from)
                        : fmt::format("{} = tst_tf32(tst_from_bits({}));", to, from));
        }
    }
  }

  void loops(const std::vector<Digit>& digits, std::string_view name) {
    for (std::size_t i = digits.size(); i-- > 0;) {
      e_.line("#pragma unroll");
      e_.open(fmt::format("for (int {0}{1} = 0; {0}{1} < {2}; ++{0}{1}) {{", name, i,
                          digits[i].extent));
    }
  }
  static std::string sum(const std::vector<Digit>& digits, std::string_view name,
                         int64_t Digit::* of, int64_t constant) {
    std::string s;
    for (std::size_t i = 0; i < digits.size(); ++i)
      s = plus(s, digits[i].*of == 1 ? fmt::format("{}{}", name, i)
                                     : fmt::format("{}{} * {}", name, i, digits[i].*of));
    return plus(s, constant == 0 ? "" : std::to_string(constant));
  }
  static std::string or_zero(const std::string& s) { return s.empty() ? "0" : s; }

  /// One element of A, 0 where k is past the end: nothing may come from there.
  std::string a_element(int64_t weight, int64_t k_step) const {
    std::string at = or_zero(sum(p_.k_outer, "k", &Digit::weight, weight));
    std::string x = fmt::format("{}[{}]", a_name_, at);
    if (e_.always_live(a_, 1)) return x;
    std::string k = fmt::format("thread % {} * {}", p_.lane_k[0].extent, p_.lane_k[0].step);
    k = plus(k, sum(p_.k_outer, "k", &Digit::step, k_step));
    return fmt::format("({} < {} ? {} : 0.0f)", k, e_.live(a_.axes[1]), x);
  }

  /// A's registers of every instruction of a turn of the k loops: a[step of k][rows][register].
  void fragments() {
    const std::vector<int64_t> steps = all(k_read_, &Digit::weight);
    const std::vector<int64_t> step_k = all(k_read_, &Digit::step);
    const std::vector<int64_t> rows = all(p_.m_outer, &Digit::weight);
    const int64_t registers = p_.by->a.mode(1).size() / p_.by->per_register;
    const std::string shape = fmt::format("[{}][{}][{}]", steps.size(), rows.size(), registers);
    e_.line(fmt::format("uint32_t mma_a{}{};", shape, split() ? ", mma_a_low" + shape : ""));
    if (product_.a_fragment) return read_fragments(steps);
    // The instruction's registers: its modes in order, digits of k and m in turn.
    std::vector<std::pair<int64_t, int64_t>> slots = {{0, 0}};  // weight, step of k
    std::size_t k = 0, m = 0;
    const std::vector<int64_t> strides = flatten(p_.by->a.mode(1).stride());
    for (int64_t s : strides) {
      const bool row = s < p_.by->m;
      const Digit& d = row ? p_.m_inner[m++] : p_.k_inner[k++];
      const auto below = slots;
      for (int64_t i = 1; i < d.extent; ++i)
        for (const auto& b : below)
          slots.emplace_back(b.first + i * d.weight, b.second + (row ? 0 : i * d.step));
    }
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (int64_t i = 0; i < registers; ++i)
          fragment(s, r, i, steps[s] + rows[r], step_k[s], slots);
  }
  void fragment(std::size_t s, std::size_t r, int64_t i, int64_t weight, int64_t k_step,
                const std::vector<std::pair<int64_t, int64_t>>& slots) {
    auto element = [&](int64_t slot) {
      return a_element(weight + slots[slot].first, k_step + slots[slot].second);
    };
    const std::string to = fmt::format("mma_a[{}][{}][{}]", s, r, i);
    if (narrow()) {
      e_.line(fmt::format("{} = tst_pack_{}({}, {});", to, name_of(p_.by->operands), element(2 * i),
                          element(2 * i + 1)));
    } else if (split()) {
      e_.line(
          fmt::format("tst_split_tf32({}, {}, mma_a_low[{}][{}][{}]);", element(i), to, s, r, i));
    } else {
      e_.line(
          fmt::format("{} = tst_{}({});", to, product_.a_rounded ? "bits" : "tf32", element(i)));
    }
  }

  /// The k digits inside the instruction that no read covers: one read each.
  [[nodiscard]] std::vector<Digit> apart() const {
    std::vector<Digit> out;
    for (const Digit& d : p_.k_inner)
      if (!contains(p_.vector, d) && !p_.transposed_rows) out.push_back(d);
    return out;
  }

  void reads() {
    const std::vector<int64_t> places = all(apart(), &Digit::memory);
    const std::string loop =
        plus(sum(p_.k_outer, "k", &Digit::memory, 0), sum(p_.n_outer, "n", &Digit::memory, 0));
    const int64_t words = read_words();
    e_.line(fmt::format("uint32_t mma_b[{}]{};", places.size() * words,
                        split() ? fmt::format(", mma_b_low[{}]", places.size() * words) : ""));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::string from =
          plus("mma_at", plus(loop, places[i] == 0 ? "" : std::to_string(places[i])));
      e_.line(fmt::format("tst_read{}<{}>(mma_b + {}, {});",
                          p_.transposed_rows ? "_transposed" : "", words, i * words, from));
    }
    if (!narrow())
      e_.line(split() ? "tst_split_tf32(mma_b, mma_b_low);" : "tst_round_tf32(mma_b);");
  }
  [[nodiscard]] int64_t read_words() const {
    if (p_.transposed_rows) {
      int64_t matrices = 1;
      for (const Digit& d : p_.vector) matrices *= d.extent;
      return matrices;
    }
    return p_.vector_elements / p_.by->per_register;
  }

  /// The word of `f` that holds B's register `e` (a digit of k inside the instruction) of the
  /// instruction at steps k and n of the read.
  [[nodiscard]] int64_t word(int64_t e, int64_t k_place, std::size_t n) const {
    if (p_.transposed_rows) return e + 2 * static_cast<int64_t>(n);
    const Digit& d = p_.k_inner.back();
    const int64_t n_place = all(n_read_, &Digit::memory)[n];
    if (contains(p_.vector, d)) return (e * d.memory + k_place + n_place) / p_.by->per_register;
    return e * read_words() + (k_place + n_place) / p_.by->per_register;
  }

  void instructions() {
    const std::vector<int64_t> k_places = all(k_read_, &Digit::memory);
    const std::vector<int64_t> columns = all(n_read_, &Digit::weight);
    const std::vector<int64_t> rows = all(p_.m_outer_c, &Digit::weight);
    const std::string helper = fmt::format("tst_mma_{}<{}, {}>", identifier(), p_.n_inner[0].weight,
                                           p_.m_inner_c[0].weight);
    for (std::size_t s = 0; s < k_places.size(); ++s)
      for (int term = split() ? 2 : 0; term >= 0; --term)
        for (std::size_t n = 0; n < columns.size(); ++n)
          for (std::size_t r = 0; r < rows.size(); ++r) {
            const std::string to =
                plus(c_name_, sum(p_.n_outer, "n", &Digit::weight, columns[n] + rows[r]));
            const std::string f = term == 1 ? "mma_b_low" : "mma_b";
            e_.line(fmt::format("{}({}, {}[{}][{}], {}[{}], {}[{}]);", helper, to,
                                term == 2 ? "mma_a_low" : "mma_a", s, r, f, word(0, k_places[s], n),
                                f, word(1, k_places[s], n)));
          }
  }
  [[nodiscard]] std::string identifier() const {
    std::string s(p_.by->name);
    std::replace(s.begin(), s.end(), '.', '_');
    return s;
  }

  Emitter& e_;
  const DotPlan& p_;
  const Product& product_;
  const Type& a_;
  std::string a_name_, a_value_, c_name_;
  const Type& b_;
  const Ring& ring_;
  std::string b_name_;
  std::vector<Digit> k_read_, n_read_;
};

}  // namespace

Result<DotPlan> plan_of(const Kernel& k, const Op& op) {
  const Product& by = product(op);
  auto type = [&](ValueId v) -> const Type& { return k.values.at(v.index).type; };
  TESSERA_TRY(plan, plan_dot(*by.by, by.a_fragment ? *by.a_fragment : type(op.operands[0]),
                             type(op.operands[1]), by.b_transposed, type(op.operands[2])));
  if (!by.a_fragment) return plan;
  // Both operands are read alike, so both must have k contiguous.
  const Layout columns = coalesce(type(op.operands[0]).layout.mode(1));
  if (plan.transposed_rows || plan.lane[0].memory != plan.lane[0].step ||
      columns != Layout(columns.size(), 1))
    return error(fail(unsupported, "{} reads {} and {} from shared memory", by.by->name,
                      to_string(type(op.operands[0])), to_string(type(op.operands[1])))
                     .expect("k contiguous in both"));
  return plan;
}

Status emit_product(Emitter& e, const Op& op) {
  TESSERA_TRY(plan, plan_of(*e.kernel, op));
  e.uses_products = true;
  e.declare(op.results[0], {op.operands[2]});
  if (e.array(op.results[0]) != e.array(op.operands[2]))
    e.line(fmt::format("tst_copy({}, {}, {});", e.array(op.results[0]), e.array(op.operands[2]),
                       e.type(op.results[0]).registers()));
  return Writer(e, op, plan).write();
}

}  // namespace tessera::tile
