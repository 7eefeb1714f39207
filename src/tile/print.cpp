#include "tile/print.h"

#include <algorithm>

#include "base/text.h"
#include "tile/op_record.h"

namespace tessera::tile {
namespace {

class Printer {
 public:
  explicit Printer(const Program& p) : program_(p) {}

  void kernel(const Kernel& k, const std::string& parameters) {
    kernel_ = &k;
    declared_.clear();
    std::string constants;
    for (const auto& [name, value] : k.constants)
      constants += fmt::format(", {}: const = {}", name, value);
    if (!out.empty()) out += "\n\n";
    line(fmt::format("@kernel(threads={}{})", k.threads,
                     k.min_blocks > 0 ? fmt::format(", min_blocks={}", k.min_blocks) : ""));
    line(fmt::format("def {}({}{}):", k.name, parameters, constants));
    ++depth_;
    region(k.body);
    if (k.body.ops.empty()) line("pass");
    --depth_;
  }
  std::string out;

 private:
  [[nodiscard]] const std::string& name(ValueId v) const {
    return kernel_->values.at(v.index).name;
  }
  [[nodiscard]] std::string names(const std::vector<ValueId>& values) const {
    std::string s;
    for (ValueId v : values) s += (s.empty() ? "" : ", ") + name(v);
    return s;
  }
  void line(const std::string& text) {
    out += std::string(std::size_t{4} * static_cast<std::size_t>(depth_), ' ') + text + "\n";
  }

  /// The fields of an op. Variables that they name and that stand nowhere above are declared first:
  /// a ring of shared memory is made before the loop that walks it.
  FieldWriter fields_of(const Op& op) {
    FieldWriter fields;
    fields.program = &program_;
    fields.kernel = kernel_;
    fields.declared = &declared_;
    op.payload.write(fields);
    for (std::size_t i = 0; i < fields.named.size(); ++i) {
      const VarId v = fields.named[i];
      if (declared_.insert(v).second) line(fmt::format("{} = {}", fields.text(v), fields.span(v)));
    }
    return fields;
  }

  std::string call(const Op& op, FieldWriter& fields) {
    std::string arguments = fields.first;
    // Carried values stand before the loop.
    for (std::size_t i = 0; i < op.operands.size() && op.record->form == Form::call; ++i) {
      const auto at = fields.subscripts.find(i);
      arguments += (arguments.empty() ? "" : ", ") + name(op.operands[i]) +
                   (at == fields.subscripts.end() ? "" : "[" + at->second + "]");
    }
    if (arguments.empty() && !fields.keywords.empty()) fields.keywords.erase(0, 2);
    return fmt::format("{}({}{})", op.record->name, arguments, fields.keywords);
  }

  void region(const Region& r) {
    for (const Op& op : r.ops) {
      if (op.record->form != Form::call) {
        block(op);
        continue;
      }
      FieldWriter fields = fields_of(op);
      line(op.results.empty() ? call(op, fields) : names(op.results) + " = " + call(op, fields));
    }
  }

  void block(const Op& op) {
    const Region& r = op.regions.at(0);
    const bool carries = !op.operands.empty();
    FieldWriter fields = fields_of(op);
    if (carries) line(names(r.arguments) + " = carry(" + names(op.operands) + ")");
    const std::string head = call(op, fields) + ":";
    const std::set<VarId> outside = declared_;
    if (op.record->form == Form::loop) {
      line(fmt::format("for {} in {}", fmt::join(fields.walked, ", "), head));
      for (std::size_t v = 0; v < kernel_->vars.size(); ++v)
        if (std::find(fields.walked.begin(), fields.walked.end(), kernel_->vars[v].name) !=
            fields.walked.end())
          declared_.insert(VarId(v));
    } else {
      line((op.record->form == Form::branch ? "if " : "with ") + head);
    }
    ++depth_;
    region(r);
    if (carries) line(names(r.arguments) + " = " + names(r.yields));
    if (!carries && r.ops.empty()) line("pass");
    --depth_;
    declared_ = outside;
    if (carries) line(names(op.results) + " = " + names(r.arguments));
  }

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::set<VarId> declared_;  // loop variables that stand above
  int depth_ = 0;
};

std::string tensor_text(const Tensor& t) {
  std::string s = fmt::format("{}: Tensor[{}", t.name, short_name(t.element));
  for (int64_t e : t.shape) s += fmt::format(", {}", e);
  if (Layout::row_major(t.shape) != Layout(IntTuple::flat(t.shape), IntTuple::flat(t.strides)))
    s += fmt::format(", strides({})", fmt::join(t.strides, ", "));
  if (t.access != Access::input) s += t.access == Access::output ? ", out" : ", workspace";
  return s + "]";
}

}  // namespace

std::string to_string(const Program& p) {
  std::string parameters;
  for (const Tensor& t : p.tensors) parameters += (parameters.empty() ? "" : ", ") + tensor_text(t);
  Printer printer(p);
  for (const Kernel& k : p.kernels) printer.kernel(k, parameters);
  return printer.out;
}

}  // namespace tessera::tile
