#include "core/testing/mutate_cluster.h"

#include <functional>

namespace tessera::core::testing {
namespace {

/// An instruction, or another op, at its place.
struct Site {
  Kernel& kernel;
  Body& body;
  std::size_t index;
  std::string role;
  [[nodiscard]] Issue* issue() const { return std::get_if<Issue>(&body[index].node); }
  [[nodiscard]] bool is(std::string_view form) const {
    return issue() != nullptr && issue()->form->name == form;
  }
  [[nodiscard]] Term number(int64_t n) const { return kernel.pool->constant(n); }
  /// The integer of an operand; null: none.
  [[nodiscard]] Term* integer(std::string_view operand) const {
    const std::vector<arch::Operand>& all = issue()->form->operands;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (auto* n = std::get_if<Integers>(&issue()->arguments[i]);
          n != nullptr && all[i].name == operand)
        return &n->values.at(0);
    return nullptr;
  }
};

/// Calls at every op, inner ones first, until `see` says that the body has changed.
// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool walk(Kernel& k, Body& body, const std::string& role,
          const std::function<bool(const Site&)>& see) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    Op& op = body[i];
    if (auto* loop = std::get_if<For>(&op.node))
      if (walk(k, loop->body, role, see)) return true;
    if (auto* branch = std::get_if<If>(&op.node))
      if (walk(k, branch->body, role, see) || walk(k, branch->otherwise, role, see)) return true;
    if (auto* elected = std::get_if<Elected>(&op.node))
      if (walk(k, elected->body, role, see)) return true;
    if (auto* within = std::get_if<Role>(&op.node))
      if (walk(k, within->body, within->name, see)) return true;
    if (see({k, body, i, role})) return true;
  }
  return false;
}

void drop(const Site& s) {
  s.body.erase(s.body.begin() + static_cast<std::ptrdiff_t>(s.index));
}

/// An edit of one place; false where it does not apply.
struct Local {
  std::string name, edit;
  std::function<bool(const Site&)> apply;
};
/// An edit of all places at once.
struct Global {
  std::string name, edit;
  std::function<void(Kernel&)> apply;
};

bool set(Term* t, const Term& to) {
  if (t == nullptr) return false;
  *t = to;
  return true;
}

std::vector<Local> of_arrivals() {
  const auto rank = [](const std::function<Term(const Site&, Term)>& to) {
    return [to](const Site& s) {
      if (!s.is("mbarrier.arrive_at")) return false;
      Term* t = s.integer("rank");
      return set(t, to(s, *t));
    };
  };
  return {
      {"other_rank", "an arrival goes to the other block",
       rank([](const Site& s, Term t) { return s.number(1) - t; })},
      {"own_rank", "an arrival goes to the own block",
       rank([](const Site& s, Term) { return s.kernel.at.rank; })},
      {"rank_beyond", "an arrival goes to a block that there is not",
       rank([](const Site& s, Term t) { return t + s.kernel.cluster; })},
      {"local_arrival", "an arrival at another block's barrier is one at the own",
       [](const Site& s) {
         if (!s.is("mbarrier.arrive_at")) return false;
         s.issue()->form = arch::find_form("mbarrier.arrive");
         s.issue()->arguments.pop_back();
         return true;
       }},
      {"count_of_one_block", "a barrier counts the arrivals of one block",
       [](const Site& s) {
         Term* n = s.is("mbarrier.init") ? s.integer("count") : nullptr;
         if (n == nullptr || (*n)->op != term::Op::constant || (*n)->value % 2 != 0) return false;
         return set(n, s.number((*n)->value / 2));
       }},
  };
}

std::vector<Local> of_copies() {
  const auto mask = [](const std::function<Term(const Site&)>& to) {
    return [to](const Site& s) {
      return s.is("tma.load_multicast") && set(s.integer("blocks"), to(s));
    };
  };
  return {
      {"mask_of_own", "a copy goes to the own block alone",
       mask([](const Site& s) { return s.kernel.at.rank + 1; })},
      {"mask_of_other", "a copy goes to the other block alone",
       mask([](const Site& s) { return s.number(2) - s.kernel.at.rank; })},
      {"mask_of_first", "a copy goes to the first block alone",
       mask([](const Site& s) { return s.number(1); })},
      {"mask_beyond", "a copy goes to a block that there is not",
       mask([](const Site& s) { return s.number(7); })},
      {"same_share", "both blocks copy to the first share's place",
       [](const Site& s) {
         if (!s.is("tma.load_multicast")) return false;
         std::get<SharedAt>(s.issue()->arguments[0]).at[1] = s.number(0);
         return true;
       }},
      {"not_multicast", "a copy is for the own block",
       [](const Site& s) {
         if (!s.is("tma.load_multicast")) return false;
         s.issue()->form = arch::find_form("tma.load");
         s.issue()->arguments.resize(s.issue()->form->operands.size());
         return true;
       }},
      {"bytes_of_own_share", "a block expects what it copies itself",
       [](const Site& s) {
         Term* n = s.is("mbarrier.arrive_expect_tx") ? s.integer("bytes") : nullptr;
         if (n == nullptr || s.index + 1 >= s.body.size()) return false;
         int64_t own = 0;
         for (std::size_t i = s.index + 1; i < s.body.size(); ++i)
           if (const auto* load = s.body[i].as<Issue>())
             if (const auto* map = std::get_if<MapRef>(&load->arguments[1])) {
               int64_t bytes = size_of(s.kernel[s.kernel[map->map].tensor].element);
               for (int64_t extent : s.kernel[map->map].box) bytes *= extent;
               own += bytes;
             }
         return set(n, s.number(own));
       }},
      {"one_block_copies", "the first block alone copies",
       [](const Site& s) {
         if (!s.is("tma.load_multicast")) return false;
         Op copy = s.body[s.index];
         s.body[s.index].node = If{term::equals(s.kernel.at.rank, s.number(0)), {copy}, {}};
         return true;
       }},
  };
}

std::vector<Local> of_meetings() {
  const auto dropped = [](std::string_view prefix) {
    return [=](const Site& s) {
      if (s.issue() == nullptr || !s.issue()->form->name.starts_with(prefix)) return false;
      drop(s);
      return true;
    };
  };
  return {
      {"drop_cluster_arrive", "the cluster's barrier is not come to", dropped("cluster.arrive")},
      {"drop_cluster_wait", "the cluster's barrier is not waited for", dropped("cluster.wait")},
      {"duplicate_cluster_arrive", "the cluster's barrier is come to twice",
       [](const Site& s) {
         if (s.issue() == nullptr || !s.issue()->form->name.starts_with("cluster.arrive"))
           return false;
         Op copy = s.body[s.index];
         s.body.insert(s.body.begin() + static_cast<std::ptrdiff_t>(s.index), copy);
         return true;
       }},
      {"early_cluster_wait", "the cluster's barrier is waited for before it is come to",
       [](const Site& s) {
         if (!s.is("cluster.wait") || s.index == 0) return false;
         std::swap(s.body[s.index], s.body[s.index - 1]);
         return true;
       }},
  };
}

/// All meetings of the cluster within roles, or those outside.
void drop_meetings(Kernel& k, bool within_roles) {
  while (walk(k, k.body, "", [&](const Site& s) {
    if (s.issue() == nullptr || s.role.empty() == within_roles ||
        !s.issue()->form->name.starts_with("cluster."))
      return false;
    drop(s);
    return true;
  })) {
  }
}

std::vector<Global> of_kernel() {
  return {
      {"drop_first_meeting", "the cluster does not meet after the barriers are made",
       [](Kernel& k) { drop_meetings(k, false); }},
      {"drop_last_meeting", "the cluster does not meet before its blocks end",
       [](Kernel& k) { drop_meetings(k, true); }},
      {"blocks_meet_first", "only each block meets after the barriers are made",
       [](Kernel& k) {
         walk(k, k.body, "", [](const Site& s) {
           if (!s.role.empty() || s.issue() == nullptr ||
               !s.issue()->form->name.starts_with("cluster.arrive"))
             return false;
           Issue meet{arch::find_form("barrier.sync"), {}, {}, {}};
           meet.arguments = {Integers{{s.number(0)}}, Integers{{s.number(s.kernel.threads)}}};
           s.body[s.index].node = meet;
           s.body.erase(s.body.begin() + static_cast<std::ptrdiff_t>(s.index) + 1);
           return true;
         });
       }},
      {"relaxed_end", "the last meeting of the cluster releases nothing",
       [](Kernel& k) {
         walk(k, k.body, "", [](const Site& s) {
           if (!s.role.empty() && s.is("cluster.arrive"))
             s.issue()->form = arch::find_form("cluster.arrive_relaxed");
           return false;
         });
       }},
  };
}

}  // namespace

std::vector<Mutant> cluster_mutants(const Kernel& kernel) {
  std::vector<Mutant> out;
  if (kernel.cluster == 1) return out;
  std::vector<Local> locals = of_arrivals();
  for (auto&& more : {of_copies(), of_meetings()})
    locals.insert(locals.end(), more.begin(), more.end());
  for (const Local& l : locals) {
    for (int site = 0;; ++site) {
      Mutant m{l.name, Breaks::synchronization, site, l.edit, kernel};
      int seen = 0;
      if (!walk(m.kernel, m.kernel.body, "", [&](const Site& s) {
            if (s.issue() == nullptr) return false;
            // Whether it applies is tried at a copy: an edit that comes too early would stay.
            Kernel probe = m.kernel;
            Body body = s.body;
            if (!l.apply({probe, body, s.index, s.role}) || seen++ != site) return false;
            return l.apply(s);
          }))
        break;
      out.push_back(std::move(m));
    }
  }
  for (const Global& g : of_kernel()) {
    Mutant m{g.name, Breaks::synchronization, 0, g.edit, kernel};
    g.apply(m.kernel);
    out.push_back(std::move(m));
  }
  return out;
}

}  // namespace tessera::core::testing
