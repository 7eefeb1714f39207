#include "tile/print.h"

#include "base/text.h"
#include "tile/op_record.h"

namespace tessera::tile {

std::string Printer::names(const std::vector<ValueId>& values) const {
  std::string s;
  for (ValueId v : values) s += (s.empty() ? "" : ", ") + name(v);
  return s;
}

std::string Printer::place(ValueId view, const std::vector<Index>& indices) const {
  std::string s;
  for (const Index& i : indices)
    s += (s.empty() ? "" : ", ") + (i.kind == Index::Kind::all ? ":" : var(i.var).name);
  return name(view) + "[" + s + "]";
}

void Printer::line(const std::string& text) {
  out += std::string(std::size_t{4} * depth, ' ') + text + "\n";
}

void Printer::region(const Region& r) {
  for (const Op& op : r.ops) {
    if (!op.regions.empty()) {
      op.record->print(*this, op);
      continue;
    }
    std::size_t start = out.size();
    op.record->print(*this, op);
    std::string call = out.substr(start);
    out.resize(start);
    line(op.results.empty() ? call : names(op.results) + " = " + call);
  }
}

std::string to_string(const Program& p) {
  Printer printer;
  printer.program = &p;
  std::string params;
  for (const Tensor& t : p.tensors) {
    params +=
        fmt::format("{}{}: Tensor[{}", params.empty() ? "" : ", ", t.name, short_name(t.element));
    for (int64_t e : t.shape) params += fmt::format(", {}", e);
    if (Layout::row_major(t.shape) != Layout(IntTuple::flat(t.shape), IntTuple::flat(t.strides)))
      params += fmt::format(", strides({})", fmt::join(t.strides, ", "));
    if (t.access != Access::input) params += t.access == Access::output ? ", out" : ", workspace";
    params += "]";
  }
  for (const Kernel& k : p.kernels) {
    printer.kernel = &k;
    std::string constants;
    for (const auto& [name, value] : k.constants)
      constants += fmt::format(", {}: const = {}", name, value);
    if (!printer.out.empty()) printer.out += "\n\n";
    printer.line(fmt::format("@kernel(threads={}{})", k.threads,
                             k.min_blocks > 0 ? fmt::format(", min_blocks={}", k.min_blocks) : ""));
    printer.line(fmt::format("def {}({}{}):", k.name, params, constants));
    printer.depth = 1;
    printer.region(k.body);
    printer.depth = 0;
  }
  return printer.out;
}

}  // namespace tessera::tile
