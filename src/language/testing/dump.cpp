#include "language/testing/dump.h"

#include <algorithm>
#include <regex>

#include "base/text.h"

namespace tessera::language::testing {
namespace {

using core::Term;

std::string text(Term t) {
  return t ? to_string(t) : "-";
}
std::string text(const std::vector<Term>& terms) {
  std::vector<std::string> parts;
  for (Term t : terms) parts.push_back(text(t));
  return "[" + join(parts, ", ") + "]";
}

struct OfArgument {
  std::string operator()(const core::SharedAt& a) const {
    return fmt::format("shared{}{}", a.shared.index, text(a.at));
  }
  std::string operator()(const core::BarrierAt& a) const {
    return fmt::format("barriers{}[{}]", a.barriers.index, text(a.slot));
  }
  std::string operator()(const core::GlobalAt& a) const {
    return fmt::format("tensor{}{}", a.tensor.index, text(a.at));
  }
  std::string operator()(const core::MapRef& a) const { return fmt::format("map{}", a.map.index); }
  std::string operator()(const core::Slice& a) const {
    return fmt::format("registers{}[{}]", a.registers.index, text(a.first));
  }
  std::string operator()(const core::Integers& a) const { return text(a.values); }
};

std::string text(const core::Run& r) {
  return fmt::format("registers{}[{} + {}]", r.registers.index, text(r.first), to_string(r.steps));
}

void write(const core::Body& body, const std::string& margin, std::string& out);

void write(const core::Issue& i, const std::string& margin, std::string& out) {
  std::vector<std::string> parts;
  for (const core::Argument& a : i.arguments) parts.push_back(std::visit(OfArgument{}, a));
  for (const auto& [name, value] : i.choices) parts.push_back(fmt::format("{}={}", name, value));
  out += fmt::format("{}{}({})\n", margin, i.form->name, join(parts, ", "));
}
void write(const core::Compute& c, const std::string& margin, std::string& out) {
  std::vector<std::string> from, to;
  for (const auto& in : c.inputs)
    from.push_back(std::holds_alternative<Term>(in) ? text(std::get<Term>(in))
                                                    : text(std::get<core::Run>(in)));
  for (const core::Run& r : c.results) to.push_back(text(r));
  out += fmt::format("{}{} x {} = {} of {}\n", margin, c.count, join(to, ", "), c.dag->to_string(),
                     join(from, ", "));
}
void write(const core::Declare& d, const std::string& margin, std::string& out) {
  out += fmt::format("{}declare registers{}\n", margin, d.registers.index);
}
void write(const core::For& f, const std::string& margin, std::string& out) {
  out += fmt::format("{}{} {} in {}, {}, {}\n", margin, f.unroll ? "unrolled" : "for",
                     text(f.counter), text(f.lower), text(f.upper), text(f.step));
  for (const core::Carried& c : f.carried)
    out += fmt::format("{}  carried {} += {}\n", margin, text(c.symbol), text(c.amount));
  write(f.body, margin + "  ", out);
}
void write(const core::If& i, const std::string& margin, std::string& out) {
  out += fmt::format("{}if {}\n", margin, text(i.condition));
  write(i.body, margin + "  ", out);
  if (i.otherwise.empty()) return;
  out += margin + "else\n";
  write(i.otherwise, margin + "  ", out);
}
void write(const core::Elected& e, const std::string& margin, std::string& out) {
  out += margin + "elected\n";
  write(e.body, margin + "  ", out);
}
void write(const core::Role& r, const std::string& margin, std::string& out) {
  out += fmt::format("{}role {} from {}, {}\n", margin, r.warps, r.first_warp, text(r.warp));
  write(r.body, margin + "  ", out);
}

std::string text(const core::Tagged& at) {
  return std::visit([](const auto& a) { return OfArgument{}(a); }, at);
}
void write(const core::Tag& t, const std::string& margin, std::string& out) {
  out += fmt::format("{}tag {} {} {}\n", margin, t.name, text(t.at),
                     t.value ? text(t.value) : "nothing");
}
void write(const core::AssertTag& a, const std::string& margin, std::string& out) {
  const auto* other = std::get_if<core::Tagged>(&a.to);
  out += fmt::format("{}assert {} {} {} {}\n", margin, a.name, a.apart ? "apart" : "same",
                     text(a.at), other != nullptr ? text(*other) : text(std::get<Term>(a.to)));
}

void write(const core::Body& body, const std::string& margin, std::string& out) {
  for (const core::Op& op : body)
    std::visit([&](const auto& node) { write(node, margin, out); }, op.node);
}

/// In the order of their loops.
void name_counters(const core::Body& body, std::vector<std::string>& names) {
  for (const core::Op& op : body) {
    if (const auto* f = op.as<core::For>()) {
      const auto add = [&](const std::string& name) {
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      };
      add(f->counter->symbol->name);
      for (const core::Carried& c : f->carried) add(c.symbol->symbol->name);
      name_counters(f->body, names);
    } else if (const auto* i = op.as<core::If>()) {
      name_counters(i->body, names);
      name_counters(i->otherwise, names);
    } else if (const auto* e = op.as<core::Elected>()) {
      name_counters(e->body, names);
    } else if (const auto* r = op.as<core::Role>()) {
      name_counters(r->body, names);
    }
  }
}

}  // namespace

std::string dump(const core::Kernel& k) {
  std::string out = fmt::format("threads {} cluster {} blocks {} grid {}\n", k.threads, k.cluster,
                                k.min_blocks, text(k.grid));
  for (Term p : k.parameters)
    out +=
        fmt::format("parameter {} in [{}, {}) modulo {}\n", text(p), text(p->symbol->bounds.lower),
                    text(p->symbol->bounds.upper), p->symbol->bounds.modulus);
  for (const core::Tensor& t : k.tensors)
    out += fmt::format("tensor {} {} {} {}\n", short_name(t.element), text(t.extents),
                       text(t.strides), static_cast<int>(t.access));
  for (const core::TensorMap& m : k.maps)
    out += fmt::format("map of tensor{} [{}] [{}] {}\n", m.tensor.index, fmt::join(m.dims, ", "),
                       fmt::join(m.box, ", "), arch::name_of(m.swizzle));
  for (const core::Shared& s : k.shared)
    out += fmt::format("shared {} {} {} at {}\n", short_name(s.element), to_string(s.layout),
                       arch::name_of(s.swizzle), s.at);
  for (const core::Barriers& b : k.barriers)
    out += fmt::format("barriers {} at {}\n", b.count, b.at);
  for (const core::Registers& r : k.registers)
    out += fmt::format("registers {} [{}] {}\n", short_name(r.element), fmt::join(r.tile, ", "),
                       to_string(r.layout));
  write(k.body, "", out);
  std::vector<std::string> counters;
  name_counters(k.body, counters);
  for (std::size_t i = 0; i < counters.size(); ++i)
    out = std::regex_replace(out, std::regex("\\b" + counters[i] + "\\b"), fmt::format("#{}", i));
  return out;
}

}  // namespace tessera::language::testing
