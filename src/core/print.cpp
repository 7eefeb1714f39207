#include "core/print.h"

#include <algorithm>
#include <cctype>
#include <fmt/ranges.h>

#include "base/text.h"

#include "core/aliases.h"
#include "core/lambda.h"

namespace tessera::core {
namespace {

/// A term, by the names that it and its parts have here, if any. One that is missing is told by the
/// verifier.
struct Terms {
  const Aliases* names = nullptr;
  std::string operator()(Term t) const {
    if (names != nullptr) return names->text(t);
    return t ? term::to_string(t) : "None";
  }
  [[nodiscard]] std::string list(const std::vector<Term>& terms) const {
    std::vector<std::string> all;
    all.reserve(terms.size());
    for (const Term t : terms) all.push_back((*this)(t));
    return join(all, ", ");
  }
  [[nodiscard]] std::string tuple(const std::vector<Term>& terms) const {
    return "(" + list(terms) + (terms.size() == 1 ? ",)" : ")");
  }
};

/// What a value of a modifier is written as: a number where it is one.
std::string modifier_text(const std::string& value) {
  const bool digits = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  return digits && (value == "0" || value.front() != '0') && value.size() < 18
             ? value
             : fmt::format("\"{}\"", value);
}

struct ArgumentText {
  const Kernel& k;
  Terms text = {};
  std::string operator()(const SharedAt& a) const {
    return k[a.shared].name + "[" + (a.at.empty() ? "()" : text.list(a.at)) + "]";
  }
  std::string operator()(const BarrierAt& a) const {
    return k[a.barriers].name + "[" + text(a.slot) + "]";
  }
  std::string operator()(const GlobalAt& a) const {
    return k[a.tensor].name + "[" + (a.at.empty() ? "()" : text.list(a.at)) + "]";
  }
  std::string operator()(const MapRef& a) const { return k[a.map].name; }
  std::string operator()(const Slice& a) const {
    return k[a.registers].name + "[" + text(a.first) + "]";
  }
  std::string operator()(const Integers& a) const {
    return a.values.size() == 1 ? text(a.values.front()) : "[" + text.list(a.values) + "]";
  }
};

/// The head of an op: all of it where it has no body.
struct HeadText {
  const Kernel& k;
  Terms text = {};

  std::string operator()(const Issue& i) const {
    std::string out = fmt::format("issue(\"{}\"", i.form->name);
    for (const Argument& a : i.arguments) out += ", " + std::visit(ArgumentText{k, text}, a);
    for (const auto& [name, value] : i.choices)
      out += fmt::format(", {}={}", name, modifier_text(value));
    return out + ")";
  }

  [[nodiscard]] std::string run(const Run& r) const {
    return fmt::format("{}[{}, \"{}\"]", k[r.registers].name, text(r.first),
                       tessera::to_string(r.steps));
  }
  std::string operator()(const Compute& c) const {
    std::vector<std::string> results;
    for (const Run& r : c.results) results.push_back(run(r));
    std::string out = results.empty() ? "" : join(results, ", ") + " = ";
    out += "map(" + lambda_text(*c.dag, c.inputs.size());
    for (const auto& input : c.inputs) {
      const auto* of_registers = std::get_if<Run>(&input);
      out += ", " + (of_registers != nullptr ? run(*of_registers) : text(std::get<Term>(input)));
    }
    out += fmt::format(", count={}", c.count);
    if (c.element) out += ", element=" + text(c.element);
    return out + ")";
  }

  std::string operator()(const Declare& d) const {
    const Registers& r = k[d.registers];
    return fmt::format("{} = registers({}, [{}], \"{}\")", r.name, short_name(r.element),
                       fmt::join(r.tile, ", "), tessera::to_string(r.layout));
  }
  std::string operator()(const For& f) const {
    const bool by_one = f.step->op == term::Op::constant && f.step->value == 1;
    return fmt::format("for {} in {}({}, {}{})", text(f.counter), f.unroll ? "unrolled" : "range",
                       text(f.lower), text(f.upper), by_one ? "" : ", " + text(f.step));
  }
  std::string operator()(const If& i) const { return "if " + text(i.condition); }
  std::string operator()(const Elected&) const { return "with elected()"; }
  [[nodiscard]] std::string tagged(const Tagged& at) const {
    return std::visit([&](const auto& a) { return ArgumentText{k, text}(a); }, at);
  }
  /// `over=[(i, 64), (j, K)]`
  [[nodiscard]] std::string over(const std::vector<Term>& symbols) const {
    std::vector<std::string> out;
    for (const Term s : symbols)
      out.push_back(fmt::format("({}, {})", text(s), Terms()(s->symbol->bounds.upper)));
    return out.empty() ? "" : ", over=[" + join(out, ", ") + "]";
  }
  std::string operator()(const Tag& t) const {
    return fmt::format("{}({}, \"{}\"{}{})", t.value ? "tag" : "reset_tag", tagged(t.at), t.name,
                       t.value ? ", " + text(t.value) : "", over(t.over));
  }
  std::string operator()(const AssertTag& a) const {
    const auto* other = std::get_if<Tagged>(&a.to);
    return fmt::format(
        "{}({}, \"{}\", {}{})", a.apart ? "assert_apart" : "assert_tag", tagged(a.at), a.name,
        other != nullptr ? tagged(*other) : text(std::get<Term>(a.to)), over(a.over));
  }
  std::string operator()(const Role& r) const {
    return fmt::format("with role({}, warps=[{}, {}]) as {}", r.name, r.first_warp,
                       r.first_warp + r.warps, text(r.warp));
  }
};

class Writer {
 public:
  explicit Writer(const Kernel& k) : k_(k), names_(k) {}

  std::string run() {
    head();
    ++depth_;
    for (const TensorMap& m : k_.maps) line(map(m));
    for (const Shared& s : k_.shared)
      line(fmt::format("{} = shared({}, \"{}\", swizzle={}, at={})", s.name, short_name(s.element),
                       tessera::to_string(s.layout), swizzle_text(s.swizzle), s.at));
    for (const Barriers& b : k_.barriers)
      line(fmt::format("{} = barriers({}, at={})", b.name, b.count, b.at));
    if (k_.body.empty() && k_.maps.empty() && k_.shared.empty() && k_.barriers.empty())
      line("pass");
    ops(k_.body, {});
    return std::move(out_);
  }

 private:
  void line(const std::string& s) {
    out_ += std::string(std::size_t{4} * static_cast<std::size_t>(depth_), ' ') + s + "\n";
  }

  void head() {
    line(fmt::format("@kernel(threads={}, cluster={}, min_blocks={}, grid={}{})", k_.threads,
                     k_.cluster, k_.min_blocks, terms_(k_.grid),
                     k_.means.empty() ? "" : ", means=\"" + k_.means + "\""));
    if (k_.parameters.empty() && k_.tensors.empty() && k_.constants.empty())
      return line("def " + k_.name + "():");
    line("def " + k_.name + "(");
    ++depth_;
    for (const Term p : k_.parameters) line(parameter(p));
    for (const Tensor& t : k_.tensors) {
      const std::string access = t.access == Access::output      ? ", out"
                                 : t.access == Access::workspace ? ", workspace"
                                                                 : "";
      line(fmt::format("{}: Tensor[{}, {}, {}{}],", t.name, short_name(t.element),
                       terms_.tuple(t.extents), terms_.tuple(t.strides), access));
    }
    for (const auto& [name, value] : k_.constants)
      line(fmt::format("{}: const = {},", name, value));
    --depth_;
    line("):");
  }

  static std::string parameter(Term p) {
    const term::Bounds& b = p->symbol->bounds;
    const Terms terms;
    std::string more;
    if (b.modulus != 1) more = fmt::format(", {}", b.modulus);
    if (b.residue != 0) more += fmt::format(", {}", b.residue);
    return fmt::format("{}: Index[{}, {}{}],", p->symbol->name, terms(b.lower), terms(b.upper),
                       more);
  }

  [[nodiscard]] std::string map(const TensorMap& m) const {
    return fmt::format("{} = tensor_map({}, dims=[{}], box=[{}], swizzle={}, fill={}{})", m.name,
                       k_[m.tensor].name, fmt::join(m.dims, ", "), fmt::join(m.box, ", "),
                       swizzle_text(m.swizzle), m.fill == arch::OutOfBounds::zeros ? "0" : "nan",
                       m.rounded ? ", rounded=True" : "");
  }

  /// Ops from number `from` on of the body at a path.
  void ops(const Body& body, const Path& around, int from = 0) {
    std::size_t begun = 0;
    for (std::size_t i = 0; i < body.size(); ++i) {
      Path at = around;
      at.push_back(from + static_cast<int>(i));
      for (const Term t : names_.before(at)) {
        const auto [name, definition] = names_.begin(t);
        line(name + " = " + definition);
        ++begun;
      }
      op(body[i], at);
    }
    names_.end(begun);
  }

  void op(const Op& op, const Path& at) {
    const std::string head = std::visit(HeadText{k_, {&names_}}, op.node);
    if (const auto* f = op.as<For>()) {
      block(head, f->body, at, 0, f->carried);
    } else if (const auto* i = op.as<If>()) {
      block(head, i->body, at);
      if (!i->otherwise.empty()) block("else", i->otherwise, at, otherwise_from);
    } else if (const auto* e = op.as<Elected>()) {
      block(head, e->body, at);
    } else if (const auto* r = op.as<Role>()) {
      block(head, r->body, at);
    } else {
      line(head);
    }
  }

  void block(const std::string& head, const Body& body, const Path& at, int from = 0,
             const std::vector<Carried>& carried = {}) {
    line(head + ":");
    ++depth_;
    for (const Carried& c : carried)
      line(fmt::format("{} = carried({})", terms_(c.symbol), terms_(c.amount)));
    if (body.empty() && carried.empty()) line("pass");
    ops(body, at, from);
    --depth_;
  }

  const Kernel& k_;
  Aliases names_;
  Terms terms_;  // of the head, where nothing has a name
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string swizzle_text(arch::SwizzleMode s) {
  return s == arch::SwizzleMode::none ? "None" : std::to_string(arch::width_of(s));
}

std::string to_string(const Kernel& k, const Argument& a) {
  return std::visit(ArgumentText{k}, a);
}

std::string head_of(const Kernel& k, const Op& op) {
  return std::visit(HeadText{k}, op.node);
}

std::string to_string(const Kernel& k) {
  return Writer(k).run();
}

}  // namespace tessera::core
