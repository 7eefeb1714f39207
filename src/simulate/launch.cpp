// What a launch gives a program: values of the parameters, the number of blocks, tensors and maps
// at their concrete sizes, the inputs' bytes.
#include <algorithm>

#include "simulate/compile.h"
#include "simulate/domain.h"
#include "term/evaluate.h"

namespace tessera::simulate {
namespace {

constexpr int64_t most_blocks = 4096;
constexpr int64_t most_elements = int64_t{1} << 28;

Status parameters(Program& p) {
  const core::Kernel& k = p.kernel;
  term::Assignment given;
  int most = 0;
  // Every symbol that a term of the kernel may name was declared before now.
  for (term::Term t :
       {k.at.lane, k.at.warp, k.at.block, k.at.blocks, k.at.rank, k.at.multiprocessors})
    most = std::max(most, t->symbol->index);
  std::vector<term::Term> symbols;
  for (term::Term t : k.parameters) {
    const std::string& name = t->symbol->name;
    const auto found = p.launch.parameters.find(name);
    if (found == p.launch.parameters.end())
      return error(fail(not_executable, "parameter `{}` of kernel `{}` has no value", name, k.name)
                       .help("give it in Launch::parameters"));
    given.symbols[name] = found->second;
    symbols.push_back(t);
    most = std::max(most, t->symbol->index);
  }
  for (const auto& [name, value] : p.launch.parameters)
    if (!given.symbols.contains(name))
      return error(fail(not_executable, "kernel `{}` has no parameter `{}`", k.name, name));
  if (Status s = term::admissible(symbols, given); !s)
    return error(fail(not_executable, "the launch's parameters are outside of their bounds: {}",
                      s.error().message));
  p.frame.assign(static_cast<std::size_t>(most) + 1, 0);
  for (term::Term t : k.parameters) p.frame[t->symbol->index] = given.symbols[t->symbol->name];
  p.frame[k.at.multiprocessors->symbol->index] = p.launch.multiprocessors;
  return {};
}

void widen(Frame& frame, const core::Body& body) {
  const auto hold = [&](term::Term t) {
    if (t && static_cast<std::size_t>(t->symbol->index) >= frame.size())
      frame.resize(t->symbol->index + 1);
  };
  for (const core::Op& op : body) {
    if (const auto* f = op.as<core::For>()) {
      hold(f->counter);
      for (const core::Carried& c : f->carried) hold(c.symbol);
      widen(frame, f->body);
    } else if (const auto* i = op.as<core::If>()) {
      widen(frame, i->body);
      widen(frame, i->otherwise);
    } else if (const auto* e = op.as<core::Elected>()) {
      widen(frame, e->body);
    } else if (const auto* r = op.as<core::Role>()) {
      hold(r->warp);
      widen(frame, r->body);
    } else if (const auto* c = op.as<core::Compute>()) {
      hold(c->element);
    } else if (const auto* t = op.as<core::Tag>()) {
      for (term::Term s : t->over) hold(s);
    } else if (const auto* a = op.as<core::AssertTag>()) {
      for (term::Term s : a->over) hold(s);
    }
  }
}

Result<int64_t> value(const Program& p, term::Term t) {
  TESSERA_TRY(e, expression(p, t));
  return e(p.frame);
}

Status grid(Program& p) {
  const core::Kernel& k = p.kernel;
  TESSERA_TRY(blocks, value(p, k.grid));
  if (blocks < 1 || blocks > most_blocks || blocks % k.cluster != 0)
    return error(fail(not_executable, "the grid has {} blocks", blocks)
                     .expect("1 to {}, a multiple of {}", most_blocks, k.cluster));
  p.blocks = blocks;
  p.frame[k.at.blocks->symbol->index] = blocks;
  return {};
}

template <class Values>
Status input(Values values, const std::map<std::string, std::vector<typename Values::Value>>& given,
             const core::Tensor& tensor, TensorCode& code) {
  const auto found = given.find(tensor.name);
  if (found == given.end() || static_cast<int64_t>(found->second.size()) != code.elements)
    return error(fail(not_executable, "input `{}` has {} elements in the launch", tensor.name,
                      found == given.end() ? 0 : found->second.size())
                     .expect("{}", code.elements));
  const int64_t size = size_of(tensor.element) * Values::cell;
  code.bytes.resize(static_cast<std::size_t>(code.elements * size));
  for (int64_t i = 0; i < code.elements; ++i)
    values.encode(tensor.element, found->second[i], code.bytes.data() + i * size);
  return {};
}

Status tensors(Program& p) {
  for (const core::Tensor& tensor : p.kernel.tensors) {
    TensorCode code{.elements = 1, .unit = size_of(tensor.element)};
    for (std::size_t i = 0; i < tensor.extents.size(); ++i) {
      TESSERA_TRY(extent, value(p, tensor.extents[i]));
      TESSERA_TRY(stride, value(p, tensor.strides[i]));
      code.extents.push_back(extent);
      code.strides.push_back(stride);
      code.elements += (extent - 1) * stride;
      if (extent < 1 || stride < 0 || code.elements > most_elements)
        return error(fail(not_executable, "tensor `{}` has extent {} and stride {} in dimension {}",
                          tensor.name, extent, stride, i)
                         .expect("1 to 2^28 elements in all"));
    }
    if (tensor.access == core::Access::workspace)
      code.elements = code.extents.at(0) * code.strides.at(0);
    if (tensor.access == core::Access::input)
      TESSERA_CHECK(p.launch.residues ? input(Residues{}, *p.launch.residues, tensor, code)
                                      : input(Numbers{}, p.launch.inputs, tensor, code));
    p.tensors.push_back(std::move(code));
  }
  return {};
}

Status maps(Program& p) {
  for (const core::TensorMap& m : p.kernel.maps) {
    const core::Tensor& tensor = p.kernel[m.tensor];
    const TensorCode& of = p.tensors[m.tensor.index];
    MapCode code{.box = m.box};
    arch::TensorMap record{
        .element = tensor.element, .box = m.box, .swizzle = m.swizzle, .fill = m.fill};
    for (int d : m.dims) {
      code.extents.push_back(of.extents.at(d));
      code.strides.push_back(of.strides.at(d));
      if (code.strides.size() > 1)
        record.strides.push_back(of.strides.at(d) * size_of(tensor.element));
    }
    record.extents = code.extents;
    // PyTorch's allocations begin at multiples of 256 bytes and more.
    TESSERA_CHECK(arch::check(record, 256));
    code.bytes = record.box_bytes();
    p.maps.push_back(std::move(code));
  }
  return {};
}

}  // namespace

Status bind(Program& p) {
  p.cell = p.launch.residues ? Residues::cell : Numbers::cell;
  TESSERA_CHECK(parameters(p));
  widen(p.frame, p.kernel.body);
  TESSERA_CHECK(grid(p));
  TESSERA_CHECK(tensors(p));
  TESSERA_CHECK(maps(p));
  const core::Coordinates& at = p.kernel.at;
  p.lane = at.lane->symbol->index;
  p.warp = at.warp->symbol->index;
  p.block = at.block->symbol->index;
  p.rank = at.rank->symbol->index;
  return {};
}

}  // namespace tessera::simulate
