// What an author says and asserts of tags: names, places within their storages, terms that are
// known.
#include <algorithm>
#include <set>

#include "core/print.h"
#include "core/verifier.h"

namespace tessera::core {
namespace {

/// Each a symbol of its own with values from 0; of a tensor's tags, up to any extent.
bool symbols(const Site& site, const std::vector<Term>& over, bool fixed) {
  std::set<const term::Node*> seen;
  for (const Term s : over) {
    const term::Symbol* symbol = s ? s->symbol : nullptr;
    const bool kind = symbol != nullptr && (symbol->kind == term::Op::coordinate ||
                                            (!fixed && symbol->kind == term::Op::counter &&
                                             symbol->bounds.lower == site.pool().constant(0)));
    if (kind && seen.insert(s.node()).second && !site.known_symbol(s)) continue;
    site.report(fail(bad_structure, "an assertion goes over something that is no symbol of its own")
                    .expect("{}", fixed ? "coordinates, each with its extent"
                                        : "coordinates, or counters from 0"));
    return false;
  }
  return true;
}

bool name_of_tag(const Site& site, const std::string& name) {
  if (is_name(name)) return true;
  site.report(fail(bad_structure, "`{}` is no name of a tag", name).expect("a name of Python"));
  return false;
}

/// A tensor's tags: one for each index, known before the kernel begins.
bool of_tensor(const Site& site, const GlobalAt& at, const std::vector<Term>& over) {
  const Tensor& t = site.kernel[at.tensor];
  const bool begins =
      site.role == nullptr && site.loops.empty() && site.control.empty() && !site.elected;
  if (t.access != Access::input || !begins) {
    site.report(fail(bad_structure, "`{}` cannot be tagged here", t.name)
                    .expect("inputs, in the kernel's own body"));
    return false;
  }
  const bool each = at.at.size() == t.extents.size() && at.at == over;
  if (!each)
    site.report(fail(bad_structure, "the tags of `{}` are not those of all its elements", t.name)
                    .expect("an index a dimension, each a symbol of its own, in `over` in order"));
  return each;
}

bool place(const Site& site, const Tagged& at) {
  const Span span = site.op->span;
  if (const auto* r = std::get_if<Slice>(&at)) {
    if (site.elected) {
      site.report(fail(bad_structure, "registers are tagged by all threads that have them")
                      .expect("no elected lane around it"));
      return false;
    }
    return verify_slots(site, r->registers, r->first, span).has_value();
  }
  const auto* s = std::get_if<SharedAt>(&at);
  if (s == nullptr) {
    const auto& g = std::get<GlobalAt>(at);
    site.report(fail(bad_structure, "elements of `{}` are looked at where they are loaded to",
                     site.kernel[g.tensor].name)
                    .expect("shared memory or registers"));
    return false;
  }
  const Shared& shared = site.kernel[s->shared];
  if (static_cast<int>(s->at.size()) != shared.layout.rank()) {
    site.report(fail(bad_structure, "`{}` has an index a mode", shared.name)
                    .expect("{}", shared.layout.rank())
                    .but_found("{}", s->at.size()));
    return false;
  }
  for (std::size_t i = 0; i < s->at.size(); ++i)
    if (!site.known(s->at[i], span) ||
        !site.prove_range(s->at[i], 1, shared.layout.mode(static_cast<int>(i)).size(),
                          bad_structure, fmt::format("index {} of `{}`", i, shared.name), span))
      return false;
  return true;
}

}  // namespace

void verify_tag(const Site& outside, const Tag& t) {
  const auto* tensor = std::get_if<GlobalAt>(&t.at);
  if (!symbols(outside, t.over, tensor == nullptr) || !name_of_tag(outside, t.name)) return;
  Site site = outside;
  site.over = &t.over;
  if (tensor != nullptr ? !of_tensor(site, *tensor, t.over) : !place(site, t.at)) return;
  if (!t.value || !site.known(t.value, site.op->span) || tensor == nullptr) return;
  const Coordinates& c = site.kernel.at;
  for (const Term s : {c.lane, c.warp, c.block, c.blocks, c.rank})
    if (depends_on(t.value, s))
      return site.report(fail(bad_structure, "a tensor's tags depend on who reads them")
                             .expect("indices and integers of the launch")
                             .but_found("`{}`", term::to_string(t.value)));
}

void verify_assertion(const Site& outside, const AssertTag& a) {
  if (!symbols(outside, a.over, true) || !name_of_tag(outside, a.name)) return;
  Site site = outside;
  site.over = &a.over;
  if (!place(site, a.at)) return;
  if (const auto* other = std::get_if<Tagged>(&a.to))
    place(site, *other);
  else
    site.known(std::get<Term>(a.to), site.op->span);
}

}  // namespace tessera::core
