// Tiles in registers: their layouts, parts of them, and what is computed element by element.
#include <algorithm>

#include "language/elaborator.h"
#include "language/tile_layout.h"
#include "term/rules.h"

namespace tessera::language {
namespace {

constexpr int64_t most_of_thread = 1020;  // of 8 bits, in 255 registers

}  // namespace

void Elaborator::lay(core::RegistersId id, Layout layout) {
  builder_->kernel().registers.at(id.index).layout = std::move(layout);
  unlaid_.erase(id.index);
}

Result<Layout> Elaborator::layout_of(const Fragment& f, Span span) {
  if (!f.whole) return f.layout;
  if (laid(f.id)) return builder_->kernel()[f.id].layout;
  return error(fail(no_layout, "how `{}` lies in the threads is not known yet",
                    builder_->kernel()[f.id].name)
                   .label(label(span))
                   .label(label(registers_span_.at(f.id.index), "made here"))
                   .expect("registers that an instruction or an assignment has taken")
                   .but_found("`{}`, which none has taken so far", builder_->kernel()[f.id].name)
                   .help("the first instruction that takes it says it: use it there first, or say "
                         "it, as `registers(.., layout=\"wgmma\")` or `registers(.., like=acc)`"));
}

Result<int64_t> Elaborator::slots_of(const Fragment& f, Span span) {
  if (!f.whole) return f.layout.mode(1).size();
  if (laid(f.id)) return builder_->kernel()[f.id].slots();
  const int64_t threads = int64_t{32} * threads_.warps, all = elements_of(f.tile);
  if (all % threads == 0) return all / threads;
  return error(fail(wrong_shape, "the tile does not go into the threads")
                   .label(label(span))
                   .expect("a multiple of {} elements", threads)
                   .but_found("{} of {}", all, shape_text(f.tile))
                   .help("choose a tile that the threads share evenly"));
}

Result<Fragment> Elaborator::registers(DType element, std::vector<int64_t> tile,
                                       std::optional<Layout> layout, Span span) {
  if (threads_.who != Threads::Who::all)
    return error(fail(wrong_place, "registers belong to all threads of a role")
                     .label(label(span))
                     .but_found("{}", threads_.text())
                     .help("make them outside of `one_thread`"));
  const int64_t most = most_of_thread * 32 * threads_.warps;
  int64_t all = 1;
  for (int64_t extent : tile) all = std::min(all, most) * std::min(extent, most + 1);
  if (all > most)
    return error(fail(wrong_shape, "the tile is larger than the threads' registers")
                     .label(label(span))
                     .expect("at most {} elements, {} a thread", most, most_of_thread)
                     .but_found("{}", shape_text(tile))
                     .help("choose a smaller tile, or give the role more warps"));
  const std::string name = fresh(naming.empty() ? "values" : naming);
  TESSERA_TRY(b, emit(span));
  const bool known = layout.has_value();
  Fragment out{.id = b->registers(name, element, tile, std::move(layout).value_or(Layout())),
               .tile = std::move(tile)};
  registers_span_[out.id.index] = b->kernel().registers.back().span = span;
  if (!known) unlaid_.insert(out.id.index);
  return out;
}

Result<Elementwise> Elaborator::elementwise(const Value& v, Span span) {
  if (const auto* e = v.as<Elementwise>()) return *e;
  Elementwise out;
  if (const auto* f = v.as<Fragment>()) {
    out.inputs = {{*f, versions_[f->id.index]}};
    out.element = builder_->kernel()[f->id].element;
    out.tile = f->tile;
    out.dag.results = {out.dag.add_operand(0)};
    return out;
  }
  if (const auto* t = v.as<Term>()) {
    const bool truth = (*t)->predicate();
    out.inputs = {{truth ? builder_->select(*t, builder_->number(1), builder_->number(0)) : *t, 0}};
    out.dag.results = {out.dag.add_operand(0)};
    return out;
  }
  if (v.as<int64_t>() != nullptr || v.as<double>() != nullptr) {
    const auto* n = v.as<int64_t>();
    out.dag.results = {
        out.dag.add_constant(n != nullptr ? static_cast<double>(*n) : *v.as<double>())};
    return out;
  }
  return error(fail(wrong_kind, "this has no elements")
                   .label(label(span, std::string(kind_of(v))))
                   .expect("registers, numbers, or what is computed of them")
                   .but_found("{}", kind_of(v))
                   .help("load it into registers first"));
}

Result<core::Run> Elaborator::run_of(const Fragment& f, Span span) {
  if (!f.whole) return core::Run{f.id, f.first, f.steps};
  TESSERA_TRY(slots, slots_of(f, span));
  return core::Run{f.id, builder_->number(0), Layout(slots, 1)};
}

Diagnostic Elaborator::apart(const Fragment& f, const Fragment& to, const Layout& from,
                             const Layout& there, Span span) {
  const core::Kernel& k = builder_->kernel();
  const std::string &name = k[f.id].name, &other = k[to.id].name;
  Diagnostic d =
      fail(no_layout, "the elements of `{}` and `{}` lie in different threads", name, other)
          .label(label(span))
          .expect("{}, as `{}` lies", to_string(there), other)
          .but_found("{}, as `{}` does", to_string(from), name)
          .help(
              "lay one out as the other is, by `registers(.., like={})`, or move the elements "
              "through shared memory",
              other);
  if (const auto e = first_elsewhere(from, f.tile, there, to.tile))
    return std::move(d).note("element {} of `{}` is in thread {}, which has not element {} of `{}`",
                             shape_text(e->at), other, e->thread, shape_text(e->of), name);
  return d;
}

Result<Term> Elaborator::element_of(const Fragment& f, Span span) {
  TESSERA_TRY(layout, layout_of(f, span));
  for (const Indexed& known : indexed_)
    if (known.tile == f.tile && same_layout(known.layout, layout)) return known.element;
  const std::string name = fmt::format("e{}", indexed_.size());
  const Term element =
      builder_->take(builder_->kernel().pool->coordinate(name, layout.mode(1).size()));
  indexed_.push_back({element, f.tile, layout});
  return element;
}

Result<Term> Elaborator::index_of_elements(const Fragment& f, int dim, Span span) {
  TESSERA_TRY(layout, layout_of(f, span));
  TESSERA_TRY(element, element_of(f, span));
  const Term thread = threads_.warp * 32 + builder_->at().lane;
  Term out = builder_->number(0);
  const auto add = [&](const Layout& mode, Term index) {
    for (const Digit& d : digits(mode, f.tile)) {
      if (d.dim != dim || d.extent == 1) continue;
      Term part = d.weight == 1 ? index : floor_div(index, d.weight);
      if (d.weight * d.extent < mode.size()) part = floor_mod(part, d.extent);
      part = term::simplify(d.distance == 1 ? part : part * d.distance);
      out = out->op == term::Op::constant ? part : out + part;
    }
  };
  add(layout.mode(0), thread);
  add(layout.mode(1), element);
  return out;
}

bool Elaborator::of_elements(Term t) const {
  return term::any_node(t, [&](Term n) {
    return std::any_of(indexed_.begin(), indexed_.end(),
                       [&](const Indexed& i) { return i.element == n; });
  });
}

Status Elaborator::name_element(core::Compute& c, Term t, const Fragment& to, Span span) {
  for (const Indexed& i : indexed_) {
    if (!term::any_node(t, [&](Term n) { return n == i.element; })) continue;
    TESSERA_TRY(there, layout_of(to, span));
    if (i.tile != to.tile || !same_layout(i.layout, there))
      return error(
          fail(no_layout, "the indices are those of elements that lie elsewhere")
              .label(label(span))
              .expect("indices of {}, which lies as {}", shape_text(to.tile), to_string(there))
              .but_found("of {}, as {}", shape_text(i.tile), to_string(i.layout))
              .help("take `indices` of registers that lie as these do"));
    c.element = i.element;
  }
  return {};
}

Status Elaborator::compute(const Fragment& to, const Elementwise& e, Span span) {
  if (threads_.who != Threads::Who::all)
    return error(fail(wrong_place, "all threads of a role compute their elements")
                     .label(label(span))
                     .but_found("{}", threads_.text())
                     .help("take it out of `one_thread`"));
  if (!e.tile.empty() && e.tile != to.tile)
    return error(fail(wrong_shape, "the elements have another shape than where they go")
                     .label(label(span))
                     .expect("{}, as `{}` has", shape_text(to.tile), builder_->kernel()[to.id].name)
                     .but_found("{}", shape_text(e.tile))
                     .help("take a part of the same shape"));
  for (const Elementwise::Input& in : e.inputs) {
    const auto* f = std::get_if<Fragment>(&in.from);
    if (f == nullptr || f->tile != to.tile || !to.whole || laid(to.id)) continue;
    TESSERA_TRY(from, layout_of(*f, span));
    lay(to.id, from);
  }
  core::Compute c{.dag = std::make_shared<pointwise::Dag>(e.dag)};
  for (const Elementwise::Input& in : e.inputs) {
    if (const auto* t = std::get_if<Term>(&in.from)) {
      TESSERA_CHECK(name_element(c, *t, to, span));
      c.inputs.emplace_back(*t);
      continue;
    }
    const auto& f = std::get<Fragment>(in.from);
    const std::string& name = builder_->kernel()[f.id].name;
    if (versions_[f.id.index] != in.version)
      return error(fail(stale_value, "`{}` has changed since these elements were taken of it", name)
                       .label(label(span))
                       .expect("`{}` as it was", name)
                       .but_found("registers that have been written since")
                       .help("elements are computed where they are used: use them before `{}` is "
                             "written, or assign them to registers of their own",
                             name));
    TESSERA_TRY(from, layout_of(f, span));
    TESSERA_TRY(there, layout_of(to, span));
    TESSERA_TRY(run, run_of(f, span));
    if (f.tile != to.tile) {
      const auto steps = f.whole ? broadcast(from, f.tile, there, to.tile) : std::nullopt;
      if (!steps) return error(apart(f, to, from, there, span));
      run.steps = *steps;
    } else if (!same_layout(from, there)) {
      return error(apart(f, to, from, there, span));
    }
    c.inputs.emplace_back(std::move(run));
  }
  TESSERA_TRY(run, run_of(to, span));
  TESSERA_TRY(slots, slots_of(to, span));
  c.results = {std::move(run)};
  c.count = slots;
  TESSERA_TRY(b, emit(span));
  b->compute(std::move(c));
  wrote(to.id);
  return {};
}

Result<Fragment> Elaborator::keep(const Value& v, Span span) {
  if (const auto* f = v.as<Fragment>()) return *f;
  TESSERA_TRY(e, elementwise(v, span));
  if (e.tile.empty())
    return error(fail(wrong_kind, "registers are needed here")
                     .label(label(span, std::string(kind_of(v))))
                     .help("make them by `registers`, `zeros` or `load`"));
  TESSERA_TRY(out, registers(e.element, e.tile, {}, span));
  TESSERA_CHECK(compute(out, e, span));
  return out;
}

Result<Fragment> Elaborator::part_of(const Fragment& f,
                                     const std::vector<std::optional<Position>>& parts, Span span) {
  TESSERA_TRY(layout, layout_of(f, span));
  const std::string& name = builder_->kernel()[f.id].name;
  const auto refuse = [&](std::string_view why) {
    return error(fail(no_layout, "this part of `{}` is no run of a thread's registers", name)
                     .label(label(span, std::string(why)))
                     .expect("parts that every thread has alike")
                     .but_found("the layout {}", to_string(layout))
                     .help("take larger parts, or parts along the other dimension"));
  };
  std::vector<int64_t> part = f.tile;
  for (std::size_t d = 0; d < parts.size(); ++d) {
    if (!parts[d]) continue;
    part[d] = parts[d]->size;
    if (f.tile[d] % part[d] != 0) return refuse("parts of this size do not fill it");
  }
  const auto first = first_part(layout, f.tile, part);
  if (!first || (!f.whole && f.steps != Layout(f.layout.mode(1).size(), 1)))
    return refuse("some threads have more of it than others");
  Fragment out{.id = f.id, .tile = part, .whole = false, .steps = first->steps};
  for (std::size_t d = 0; d < parts.size(); ++d) {
    if (!parts[d]) continue;
    const auto stride = stride_of_parts(layout, f.tile, part, *first, d);
    if (!stride) return refuse("the parts lie differently");
    const Term offset = parts[d]->index * *stride;
    out.first = out.first ? out.first + offset : offset;
  }
  if (!out.first) out.first = builder_->number(0);
  if (!f.whole) out.first = f.first + out.first;
  TESSERA_TRY(slots, tessera::compose(layout.mode(1), first->steps));
  out.layout = Layout(IntTuple::tuple({layout.mode(0).shape(), slots.shape()}),
                      IntTuple::tuple({moved(layout.mode(0).stride(), f.tile, part),
                                       moved(slots.stride(), f.tile, part)}));
  return out;
}

}  // namespace tessera::language
