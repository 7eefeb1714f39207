// Whether the threads that come to an instruction are those that have to issue it.
#include "core/verifier.h"

namespace tessera::core {
namespace {

using arch::Issuer;

/// `lane == t`, or a conjunction with it, where t is the same in all lanes.
bool names_one_lane(Term condition, Term lane) {
  if (condition->op == term::Op::logical_and)
    return names_one_lane(condition->args[0], lane) || names_one_lane(condition->args[1], lane);
  if (condition->op != term::Op::equal) return false;
  for (const int side : {0, 1})
    if (condition->args[side] == lane && !depends_on(condition->args[1 - side], lane)) return true;
  return false;
}

/// A term that sends lanes of a warp different ways; none: they come together.
Term divides_lanes(const Site& site) {
  for (const Term t : site.control)
    if (depends_on(t, site.kernel.at.lane)) return t;
  return {};
}

void refuse(const Issued& i, std::string_view expected, const std::string& found,
            std::string_view help) {
  i.site.report(fail(wrong_issuer, "`{}` is issued by the wrong threads", i.form().name)
                    .expect("{}", expected)
                    .but_found("{}", found)
                    .help("{}", help));
}

/// Whole warps come here; else a report.
bool by_warps(const Issued& i) {
  const bool group = i.form().effects.issuer == Issuer::warpgroup;
  const std::string_view expected =
      group ? "the 128 threads of a warpgroup together" : "the 32 lanes of a warp together";
  if (i.site.elected) {
    refuse(i, expected, "one elected lane", "move it out of `with elected():`");
    return false;
  }
  if (const Term t = divides_lanes(i.site); t) {
    refuse(i, expected, fmt::format("lanes that `{}` divides", term::to_string(t)),
           "move it to where all lanes come");
    return false;
  }
  return true;
}

/// Of each warpgroup all warps come here, or none.
void by_warpgroups(const Issued& i) {
  const Site& site = i.site;
  const int first = site.role == nullptr ? 0 : site.role->first_warp;
  const int warps = site.threads() / 32;
  if (first % 4 != 0 || warps % 4 != 0) {
    if (!site.told->insert(site.role).second) return;
    return refuse(i, "warpgroups: four warps, the first a multiple of four in the block",
                  fmt::format("warps {} to {}", first, first + warps - 1),
                  "give the role whole warpgroups");
  }
  const Term warp = site.warp();
  const Term leader = floor_div(warp, 4) * 4;
  // Asked of all warps, not of those alone that come here.
  Site all = site;
  std::erase_if(all.conditions, [&](Term t) { return depends_on(t, warp); });
  for (const Term t : site.control) {
    if (!depends_on(t, warp)) continue;
    const Term of_leader = replaced(t, warp, leader);
    const Term same = t->predicate()
                          ? logical_or(logical_and(t, of_leader),
                                       logical_and(logical_not(t), logical_not(of_leader)))
                          : equals(t, of_leader);
    if (!all.prove({.holds = same,
                    .code = wrong_issuer,
                    .wrong = fmt::format("`{}` is issued by the wrong threads", i.form().name),
                    .expected = "all four warps of a warpgroup, or none",
                    .found = fmt::format("warps that `{}` divides", term::to_string(t)),
                    .whether = fmt::format("all warps of a warpgroup come to `{}`", i.form().name),
                    .help = fmt::format("ask of `{} // 4`", term::to_string(warp))},
                   site.op->span))
      return;
  }
}

/// The terms of an argument by which threads could name different things.
std::vector<Term> terms_of(const Argument& a) {
  if (const auto* s = std::get_if<SharedAt>(&a)) return s->at;
  if (const auto* b = std::get_if<BarrierAt>(&a)) return {b->slot};
  if (const auto* g = std::get_if<GlobalAt>(&a)) return g->at;
  if (const auto* n = std::get_if<Integers>(&a)) return n->values;
  return {};
}

/// Whether the threads that issue together have to pass the same: warpgroups in all that they pass,
/// warps in what an event names (a barrier's number and threads, a mask of lanes).
bool is_common(const Issued& i, std::string_view operand) {
  if (i.form().effects.issuer == Issuer::warpgroup) return true;
  if (i.form().effects.issuer != Issuer::warp) return false;
  for (const arch::Event& e : i.form().effects.events)
    if (e.operand == operand ||
        (e.amount.of == arch::Amount::Of::operand && e.amount.name == operand))
      return true;
  return false;
}

}  // namespace

void verify_common(const Issued& i) {
  const Site& site = i.site;
  const bool group = i.form().effects.issuer == Issuer::warpgroup;
  Site all = site;
  std::erase_if(all.conditions, [&](Term t) { return depends_on(t, site.warp()); });
  for (std::size_t at = 0; at < i.issue.arguments.size(); ++at) {
    const std::string_view operand = i.form().operands[at].name;
    if (!is_common(i, operand)) continue;
    for (const Term t : terms_of(i.issue.arguments[at])) {
      Term first = replaced(t, site.kernel.at.lane, site.pool().constant(0));
      if (group) first = replaced(first, site.warp(), floor_div(site.warp(), 4) * 4);
      if (first == t) continue;
      if (!all.prove(
              {.holds = equals(t, first),
               .code = bad_argument,
               .wrong = fmt::format("threads that issue `{}` together pass different `{}`",
                                    i.form().name, operand),
               .expected = fmt::format("the same in all {}",
                                       group ? "128 threads of a warpgroup" : "32 lanes of a warp"),
               .found = fmt::format("`{}`", term::to_string(t)),
               .whether = fmt::format("threads that issue `{}` together pass the same `{}`",
                                      i.form().name, operand)},
              i.span(at)))
        break;
    }
  }
}

void verify_issuer(const Issued& i) {
  const Site& site = i.site;
  switch (i.form().effects.issuer) {
    case Issuer::thread:
      return;
    case Issuer::elected: {
      bool one = site.elected;
      for (const Term t : site.conditions) one = one || names_one_lane(t, site.kernel.at.lane);
      if (!one)
        refuse(i, "one lane of a warp", "every lane that comes here: it acts once for each",
               "put it into `with elected():`");
      return;
    }
    case Issuer::warp:
      by_warps(i);
      return;
    case Issuer::warpgroup:
      if (by_warps(i)) by_warpgroups(i);
      return;
  }
}

}  // namespace tessera::core
