#include "replay/edits.h"

#include <algorithm>

#include "arch/instruction.h"

#include "check/place.h"
#include "core/print.h"
#include "core/walk.h"

namespace tessera::replay {
namespace {

using core::BarrierAt;
using core::Integers;
using core::Issue;
using core::Op;
using core::Term;

// NOLINTNEXTLINE(misc-no-recursion): bodies nest
bool find(core::Body& body, int& n, std::vector<core::For*>& loops, Spot& out) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (n-- == 0) {
      out = {&body, i, loops};
      return true;
    }
    auto& node = body[i].node;
    if (auto* l = std::get_if<core::For>(&node)) {
      if (!l->unroll) loops.push_back(l);
      if (find(l->body, n, loops, out)) return true;
      if (!l->unroll) loops.pop_back();
    } else if (auto* b = std::get_if<core::If>(&node)) {
      if (find(b->body, n, loops, out) || find(b->otherwise, n, loops, out)) return true;
    } else if (auto* e = std::get_if<core::Elected>(&node)) {
      if (find(e->body, n, loops, out)) return true;
    } else if (auto* r = std::get_if<core::Role>(&node)) {
      if (find(r->body, n, loops, out)) return true;
    }
  }
  return false;
}

/// Edits of one op, collected.
class Edits {
 public:
  Edits(const core::Kernel& kernel, const Op& op, const Op* other)
      : kernel_(kernel), op_(op), other_(other) {}

  std::vector<CandidateEdit> all() {
    for (const Op* at : {&op_, other_})
      if (at != nullptr && at->as<Issue>() != nullptr) {
        turns(*at);
        numbers(*at);
      }
    waits();
    for (const Op* at : {&op_, other_})
      if (at != nullptr) fences(*at);
    for (const Op* at : {&op_, other_})
      if (at != nullptr) order(*at);
    return std::move(out_);
  }

 private:
  /// Replaces the op by what `edit` makes of its instruction.
  void replace(const Op& at, const std::function<void(Issue&)>& edit) {
    Op after = at;
    edit(std::get<Issue>(after.node));
    const std::string was = core::head_of(kernel_, at), is = core::head_of(kernel_, after);
    if (was == is) return;
    out_.push_back({fmt::format("replacing `{}` by `{}`", was, is), &at,
                    [edit](core::Kernel&, const Spot& s) { edit(std::get<Issue>(s.op().node)); }});
  }
  void insert(const Op& at, Issue issue, bool before) {
    const Op op{std::move(issue), at.span};
    out_.push_back({fmt::format("putting `{}` {} `{}`", core::head_of(kernel_, op),
                                before ? "before" : "behind", core::head_of(kernel_, at)),
                    &at, [op, before](core::Kernel&, const Spot& s) {
                      s.body->insert(
                          s.body->begin() + static_cast<std::ptrdiff_t>(s.index + (before ? 0 : 1)),
                          op);
                    }});
  }

  /// Terms of the instruction with the innermost loop's counter more or less by one: a slot, a
  /// parity, a coordinate of another turn.
  void turns(const Op& at) {
    Term counter;
    std::vector<Term> loops;
    loop_of(kernel_.body, at, loops);
    if (!loops.empty()) counter = loops.back();
    const Issue& issue = *at.as<Issue>();
    for (std::size_t i = 0; counter && i < issue.arguments.size(); ++i)
      for (const int by : {-1, 1})
        replace(at, [=](Issue& edited) {
          core::Argument& a = edited.arguments[i];
          const auto turn = [&](Term& t) { t = check::with_term(t, counter, counter + by); };
          if (auto* b = std::get_if<BarrierAt>(&a)) {
            turn(b->slot);
            for (core::Argument& more : edited.arguments)  // its parity is of the same turn
              if (auto* n = std::get_if<Integers>(&more); n != nullptr && &more != &a)
                for (Term& t : n->values) turn(t);
          }
          if (auto* s = std::get_if<core::SharedAt>(&a))
            for (Term& t : s->at) turn(t);
          if (auto* n = std::get_if<Integers>(&a))
            for (Term& t : n->values) turn(t);
        });
    for (std::size_t i = 0; i < issue.arguments.size(); ++i) {
      const auto* b = std::get_if<BarrierAt>(&issue.arguments[i]);
      if (b == nullptr) continue;
      const int64_t count = kernel_[b->barriers].count;
      for (const int64_t by : {count - 1, int64_t{1}})
        if (count > 1)
          replace(at, [=](Issue& edited) {
            auto& slot = std::get<BarrierAt>(edited.arguments[i]).slot;
            slot = term::floor_mod(slot + by, count);
          });
    }
  }

  /// Another parity, count or number of groups; the bytes that the barrier's copies bring.
  void numbers(const Op& at) {
    const Issue& issue = *at.as<Issue>();
    const std::string& name = issue.form->name;
    for (std::size_t i = 0; i < issue.arguments.size() && i < issue.form->operands.size(); ++i) {
      const auto* n = std::get_if<Integers>(&issue.arguments[i]);
      if (n == nullptr || n->values.size() != 1) continue;
      const std::string_view operand = issue.form->operands[i].name;
      const auto set = [&](const std::function<Term(Term)>& to) {
        replace(at, [=](Issue& edited) {
          Term& t = std::get<Integers>(edited.arguments[i]).values[0];
          t = to(t);
        });
      };
      if (operand == "parity")
        set([](Term t) { return term::floor_mod(t + 1, int64_t{2}); });
      else if (name == "mbarrier.arrive_expect_tx" && operand == "bytes")
        set([bytes = bytes_of(std::get<BarrierAt>(issue.arguments[0]))](Term t) {
          return t.pool().constant(bytes);
        });
      else if (name == "mbarrier.init" || name.find(".wait") != std::string::npos)
        for (const int64_t by : {int64_t{-1}, int64_t{1}})
          if (n->values[0]->op == term::Op::constant && n->values[0]->value + by >= 0)
            set([by](Term t) { return t.pool().constant(t->value + by); });
      if (operand == "at") continue;
    }
    for (std::size_t i = 0; i < issue.arguments.size(); ++i) {
      const auto* n = std::get_if<Integers>(&issue.arguments[i]);
      if (n == nullptr || n->values.size() < 2) continue;
      for (std::size_t d = 0; d < n->values.size(); ++d)
        for (const int64_t by : {-1, 1, -8, 8, -64, 64})
          replace(at, [=](Issue& edited) {
            Term& t = std::get<Integers>(edited.arguments[i]).values[d];
            t = t + by;
          });
    }
  }
  [[nodiscard]] int64_t bytes_of(const BarrierAt& barrier) const {
    int64_t bytes = 0;
    for (const check::Place& p : check::places(kernel_)) {
      const auto* issue = p.op->as<Issue>();
      const auto* to = issue == nullptr ? nullptr : check::argument<BarrierAt>(*issue, "barrier");
      const auto* map = issue == nullptr ? nullptr : check::argument<core::MapRef>(*issue, "map");
      if (to == nullptr || map == nullptr || to->barriers != barrier.barriers) continue;
      const core::TensorMap& m = kernel_[map->map];
      int64_t box = size_of(kernel_[m.tensor].element);
      for (const int64_t e : m.box) box *= e;
      const auto turns = static_cast<int64_t>(check::turns_of(p.unrolled).size());
      const bool all = check::argument<Integers>(*issue, "blocks") != nullptr;
      bytes += box * turns * (all ? kernel_.cluster : 1);
    }
    return bytes;
  }

  /// A wait for the copy that the op reads, or until its slot has been left by the reader; for the
  /// groups of products and copies.
  void waits() {
    for (const auto& [copy, user] : {std::pair(other_, &op_), std::pair(&op_, other_)}) {
      const auto* issue = copy == nullptr ? nullptr : copy->as<Issue>();
      const auto* full = issue == nullptr ? nullptr : check::argument<BarrierAt>(*issue, "barrier");
      if (full == nullptr || full->slot->op != term::Op::remainder) continue;
      const Term count = full->slot->args[0];
      const int64_t slots = kernel_[full->barriers].count;
      const auto wait = [&](core::BarriersId barriers, int64_t ahead) {
        const Term parity = term::floor_mod(term::floor_div(count, slots) + ahead, int64_t{2});
        return Issue{arch::find_form("mbarrier.wait"),
                     {},
                     {BarrierAt{barriers, full->slot}, Integers{{parity}}}};
      };
      if (user == &op_)
        for (const Op* at : {first_beside(op_), &op_}) insert(*at, wait(full->barriers, 0), true);
      else
        for (std::size_t b = 0; b < kernel_.barriers.size(); ++b)
          if (static_cast<int>(b) != full->barriers.index && kernel_.barriers[b].count == slots)
            insert(*first_beside(op_), wait(core::BarriersId(b), 1), true);
    }
    for (const char* name : {"wgmma.wait", "bulk.wait_read"})
      insert(op_, Issue{arch::find_form(name), {}, {Integers{{kernel_.pool->constant(0)}}}}, true);
  }

  void fences(const Op& at) {
    for (const char* name : {"fence.async.shared::cta", "wgmma.fence", "fence.mbarrier_init"})
      for (const bool before : {true, false})
        insert(at, Issue{arch::find_form(name), {}, {}}, before);
  }

  /// Exchanged with its neighbours, or gone.
  void order(const Op& at) {
    const std::string name = core::head_of(kernel_, at);
    for (const int by : {-1, 1})
      out_.push_back(
          {fmt::format("exchanging `{}` with the op {} it", name, by < 0 ? "before" : "behind"),
           &at, [by](core::Kernel&, const Spot& s) {
             const auto with = static_cast<std::ptrdiff_t>(s.index) + by;
             if (with >= 0 && with < static_cast<std::ptrdiff_t>(s.body->size()))
               std::swap((*s.body)[s.index], (*s.body)[static_cast<std::size_t>(with)]);
           }});
    out_.push_back({fmt::format("taking `{}` away", name), &at, [](core::Kernel&, const Spot& s) {
                      s.body->erase(s.body->begin() + static_cast<std::ptrdiff_t>(s.index));
                    }});
  }

  /// Counters of the loops around an op.
  // NOLINTNEXTLINE(misc-no-recursion): bodies nest
  static bool loop_of(const core::Body& body, const Op& at, std::vector<Term>& out) {
    for (const Op& op : body) {
      if (&op == &at) return true;
      if (const auto* l = op.as<core::For>()) {
        if (!l->unroll) out.push_back(l->counter);
        if (loop_of(l->body, at, out)) return true;
        if (!l->unroll) out.pop_back();
      }
      if (const auto* b = op.as<core::If>())
        if (loop_of(b->body, at, out) || loop_of(b->otherwise, at, out)) return true;
      if (const auto* e = op.as<core::Elected>())
        if (loop_of(e->body, at, out)) return true;
      if (const auto* r = op.as<core::Role>())
        if (loop_of(r->body, at, out)) return true;
    }
    return false;
  }
  /// The first op of the innermost body of a loop that has the op.
  const Op* first_beside(const Op& at) const {
    const Op* out = &at;
    core::for_each_op(kernel_.body, [&](const Op& op) {
      const auto* l = op.as<core::For>();
      if (l == nullptr || l->unroll || l->body.empty()) return;
      core::for_each_op(l->body, [&](const Op& inner) {
        if (&inner == &at) out = &l->body.front();
      });
    });
    return out;
  }

  const core::Kernel& kernel_;
  const Op& op_;
  const Op* other_;
  std::vector<CandidateEdit> out_;
};

}  // namespace

std::optional<Spot> spot_of(core::Kernel& kernel, int n) {
  Spot out;
  std::vector<core::For*> loops;
  if (!find(kernel.body, n, loops, out)) return std::nullopt;
  return out;
}

std::vector<CandidateEdit> edits_at(const core::Kernel& kernel, const Op& op, const Op* other) {
  return Edits(kernel, op, other).all();
}

}  // namespace tessera::replay
