#include "core/print.h"

#include <algorithm>
#include <cctype>
#include <fmt/ranges.h>

#include "base/text.h"

#include "core/lambda.h"

namespace tessera::core {
namespace {

using term::to_string;

std::string list(const std::vector<Term>& terms) {
  std::vector<std::string> all;
  all.reserve(terms.size());
  for (const Term t : terms) all.push_back(to_string(t));
  return join(all, ", ");
}

std::string tuple(const std::vector<Term>& terms) {
  return "(" + list(terms) + (terms.size() == 1 ? ",)" : ")");
}

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
  std::string operator()(const SharedAt& a) const {
    return k[a.shared].name + "[" + (a.at.empty() ? "()" : list(a.at)) + "]";
  }
  std::string operator()(const BarrierAt& a) const {
    return k[a.barriers].name + "[" + to_string(a.slot) + "]";
  }
  std::string operator()(const GlobalAt& a) const {
    return k[a.tensor].name + "[" + (a.at.empty() ? "()" : list(a.at)) + "]";
  }
  std::string operator()(const MapRef& a) const { return k[a.map].name; }
  std::string operator()(const Slice& a) const {
    return k[a.registers].name + "[" + to_string(a.first) + "]";
  }
  std::string operator()(const Integers& a) const {
    return a.values.size() == 1 ? to_string(a.values.front()) : "[" + list(a.values) + "]";
  }
};

/// The head of an op: all of it where it has no body.
struct HeadText {
  const Kernel& k;

  std::string operator()(const Issue& i) const {
    std::string out = fmt::format("issue(\"{}\"", i.form->name);
    for (const Argument& a : i.arguments) out += ", " + to_string(k, a);
    for (const auto& [name, value] : i.choices)
      out += fmt::format(", {}={}", name, modifier_text(value));
    return out + ")";
  }

  [[nodiscard]] std::string run(const Run& r) const {
    return fmt::format("{}[{}, \"{}\"]", k[r.registers].name, to_string(r.first),
                       tessera::to_string(r.steps));
  }
  std::string operator()(const Compute& c) const {
    std::vector<std::string> results;
    for (const Run& r : c.results) results.push_back(run(r));
    std::string out = results.empty() ? "" : join(results, ", ") + " = ";
    out += "map(" + lambda_text(*c.dag, c.inputs.size());
    for (const auto& input : c.inputs) {
      const auto* of_registers = std::get_if<Run>(&input);
      out +=
          ", " + (of_registers != nullptr ? run(*of_registers) : to_string(std::get<Term>(input)));
    }
    out += fmt::format(", count={}", c.count);
    if (c.element) out += ", element=" + to_string(c.element);
    return out + ")";
  }

  std::string operator()(const Declare& d) const {
    const Registers& r = k[d.registers];
    return fmt::format("{} = registers({}, [{}], \"{}\")", r.name, short_name(r.element),
                       fmt::join(r.tile, ", "), tessera::to_string(r.layout));
  }
  std::string operator()(const For& f) const {
    const bool by_one = f.step->op == term::Op::constant && f.step->value == 1;
    return fmt::format("for {} in {}({}, {}{})", to_string(f.counter),
                       f.unroll ? "unrolled" : "range", to_string(f.lower), to_string(f.upper),
                       by_one ? "" : ", " + to_string(f.step));
  }
  std::string operator()(const If& i) const { return "if " + to_string(i.condition); }
  std::string operator()(const Elected&) const { return "with elected()"; }
  std::string operator()(const Role& r) const {
    return fmt::format("with role({}, warps=[{}, {}]) as {}", r.name, r.first_warp,
                       r.first_warp + r.warps, to_string(r.warp));
  }
};

class Writer {
 public:
  explicit Writer(const Kernel& k) : k_(k) {}

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
    ops(k_.body);
    return std::move(out_);
  }

 private:
  void line(const std::string& s) {
    out_ += std::string(std::size_t{4} * static_cast<std::size_t>(depth_), ' ') + s + "\n";
  }

  void head() {
    line(fmt::format("@kernel(threads={}, cluster={}, min_blocks={}, grid={})", k_.threads,
                     k_.cluster, k_.min_blocks, to_string(k_.grid)));
    if (k_.parameters.empty() && k_.tensors.empty() && k_.constants.empty())
      return line("def " + k_.name + "():");
    line("def " + k_.name + "(");
    ++depth_;
    for (const Term p : k_.parameters) line(parameter(p));
    for (const Tensor& t : k_.tensors) {
      const std::string access = t.access == Access::output      ? ", out"
                                 : t.access == Access::workspace ? ", workspace"
                                                                 : "";
      line(fmt::format("{}: Tensor[{}, {}, {}{}],", t.name, short_name(t.element), tuple(t.extents),
                       tuple(t.strides), access));
    }
    for (const auto& [name, value] : k_.constants)
      line(fmt::format("{}: const = {},", name, value));
    --depth_;
    line("):");
  }

  static std::string parameter(Term p) {
    const term::Bounds& b = p->symbol->bounds;
    const auto bound = [](Term t) { return t ? to_string(t) : "None"; };
    std::string more;
    if (b.modulus != 1) more = fmt::format(", {}", b.modulus);
    if (b.residue != 0) more += fmt::format(", {}", b.residue);
    return fmt::format("{}: Index[{}, {}{}],", p->symbol->name, bound(b.lower), bound(b.upper),
                       more);
  }

  [[nodiscard]] std::string map(const TensorMap& m) const {
    return fmt::format("{} = tensor_map({}, dims=[{}], box=[{}], swizzle={}, fill={}{})", m.name,
                       k_[m.tensor].name, fmt::join(m.dims, ", "), fmt::join(m.box, ", "),
                       swizzle_text(m.swizzle), m.fill == arch::OutOfBounds::zeros ? "0" : "nan",
                       m.rounded ? ", rounded=True" : "");
  }

  void ops(const Body& body) {
    for (const Op& op : body) {
      const std::string head = head_of(k_, op);
      if (const auto* f = op.as<For>()) {
        block(head, f->body);
      } else if (const auto* i = op.as<If>()) {
        block(head, i->body);
        if (!i->otherwise.empty()) block("else", i->otherwise);
      } else if (const auto* e = op.as<Elected>()) {
        block(head, e->body);
      } else if (const auto* r = op.as<Role>()) {
        block(head, r->body);
      } else {
        line(head);
      }
    }
  }

  void block(const std::string& head, const Body& body) {
    line(head + ":");
    ++depth_;
    if (body.empty()) line("pass");
    ops(body);
    --depth_;
  }

  const Kernel& k_;
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
