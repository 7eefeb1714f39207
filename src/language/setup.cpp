// Threads, roles, and the barriers that are made before the first op.

#include <algorithm>

#include "language/elaborator.h"
#include "term/evaluate.h"

namespace tessera::language {
namespace {

constexpr int64_t registers_of_multiprocessor = 65536;
constexpr int64_t most_registers = 256;  // that setmaxnreg gives a thread

/// What a thread has at the launch: the registers by all threads, in steps of 8.
int64_t launch_registers(int threads, int blocks) {
  return std::min<int64_t>(registers_of_multiprocessor / threads / blocks / 8 * 8, most_registers);
}

}  // namespace

std::optional<int64_t> Threads::count() const {
  if (apart) return {};
  switch (who) {
    case Who::all:
      return int64_t{32} * warps;
    case Who::one_of_warp:
      return warps;
    case Who::one_of_warpgroup:
      return warpgroups();
    case Who::one:
      return 1;
  }
  return {};
}

std::string Threads::text() const {
  if (apart) return "threads that a condition chooses";
  const int64_t n = *count();
  return n == 1 ? "one thread" : fmt::format("{} threads", n);
}

Status Elaborator::role(const std::string& name, int64_t warps, std::optional<int64_t> registers,
                        Span span, const std::function<Status()>& body) {
  if (!threads_.role.empty() || machine_depth_ + machine_around_ > 0 ||
      threads_.who != Threads::Who::all)
    return error(fail(wrong_place, "role `{}` does not stand in the kernel's own body", name)
                     .label(label(span))
                     .expect("the kernel's own body")
                     .but_found("{}", !threads_.role.empty() ? "role `" + threads_.role + "`"
                                      : threads_.who != Threads::Who::all ? "`one_thread`"
                                                                          : "a loop or a branch")
                     .help("roles stand side by side, outside of loops, branches and other roles"));
  TESSERA_TRY(b, emit(span));
  const Threads outside = threads_;
  const int first = warps_used_;
  warps_used_ += static_cast<int>(warps);
  ++roles_;
  Status status;
  b->role(fresh(name), first, static_cast<int>(warps), [&](Term warp) {
    threads_ = {.role = name, .warps = static_cast<int>(warps), .warp = warp};
    if (registers) {
      const int64_t n = *registers == rest_of_registers ? measured_.rest : *registers;
      const bool gives = n < launch_registers(b->kernel().threads, min_blocks_);
      b->issue(gives ? "setmaxnreg.dec" : "setmaxnreg.inc", {core::Integers{{b->number(n)}}});
      (*registers == rest_of_registers ? rest_warps_ : fixed_warps_) += warps;
      if (*registers != rest_of_registers) fixed_registers_ += warps * n;
    }
    frames_.push_back({{}, Frame::Of::machine});
    status = body();
    frames_.pop_back();
    b->stand_at(span);
  });
  threads_ = outside;
  return status;
}

Status Elaborator::one_thread(const std::string& of, Span span,
                              const std::function<Status()>& body) {
  if (threads_.who != Threads::Who::all)
    return error(fail(wrong_place, "`one_thread` stands where not all threads are")
                     .label(label(span))
                     .but_found("{}", threads_.text())
                     .help("take one of the two away"));
  TESSERA_TRY(b, emit(span));
  const Threads outside = threads_;
  Status status;
  const auto one = [&] {
    b->elected([&] {
      status = body();
      b->stand_at(span);
    });
  };
  const int all = threads_.warps;
  if (of == "warp" || all == 1) {
    threads_.who = of == "warp" && all > 1 ? Threads::Who::one_of_warp : Threads::Who::one;
    one();
  } else {
    const bool group = of == "warpgroup" && all > 4;
    threads_.who = group ? Threads::Who::one_of_warpgroup : Threads::Who::one;
    const Term place = of == "warpgroup" ? floor_mod(threads_.warp, int64_t{4}) : threads_.warp;
    b->when(equals(place, b->number(0)), [&] {
      one();
      b->stand_at(span);
    });
  }
  threads_ = outside;
  return status;
}

Status Elaborator::made_barriers(core::BarriersId id, std::optional<int64_t> arrivals,
                                 bool complete, Span span) {
  if (begun_)
    return error(fail(wrong_place, "barriers are made before the first thing that the kernel does")
                     .label(label(span))
                     .help("move the line up"));
  barriers_[id.index] = {.declared = arrivals, .complete = complete, .span = span, .sites = {}};
  return {};
}

Status Elaborator::set_grid(Term grid, Span span) {
  core::Kernel& k = builder_->kernel();
  if (grid_span_ == Span{}) {
    k.grid = grid;
    grid_span_ = span;
  }
  if (k.grid == grid) return {};
  return error(fail(wrong_ring, "two loops over tiles ask for different numbers of blocks")
                   .label(label(span, to_string(grid)))
                   .label(label(grid_span_, to_string(k.grid)))
                   .help("let all roles go over the same tiles"));
}

bool Elaborator::complete_at_start(core::BarriersId id) const {
  return barriers_.at(id.index).complete;
}

/// How many of a role's warps come to one slot, where those of each slot are as many.
std::optional<int64_t> Elaborator::warps_of_slot(Term slot) const {
  const auto is_warp = [&](Term n) { return n == threads_.warp; };
  if (!threads_.warp || !term::any_node(slot, is_warp)) return threads_.warps;
  std::map<int64_t, int64_t> times;
  for (int w = 0; w < threads_.warps; ++w) {
    const Result<int64_t> at = term::evaluate(slot, {{{threads_.warp->symbol->name, w}}, {}, {}});
    if (!at) return std::nullopt;
    ++times[*at];
  }
  const int64_t one = times.begin()->second;
  const bool alike = std::all_of(times.begin(), times.end(),
                                 [&](const auto& slot_times) { return slot_times.second == one; });
  return alike ? std::optional<int64_t>(one) : std::nullopt;
}

Status Elaborator::arrives(core::BarriersId id, Term slot, Span span, int64_t blocks) {
  std::optional<int64_t> n = threads_.count();
  if (n && threads_.who == Threads::Who::all) n = warps_of_slot(slot);
  if (n) *n *= blocks;
  if (some_turns_) n.reset();  // other roles may arrive in the turns that are left out
  barriers_[id.index].sites.push_back({threads_.role, n, span});
  return {};
}

void Elaborator::make_barriers() {
  core::Builder& b = *builder_;
  const std::vector<core::Barriers>& all = b.kernel().barriers;
  if (all.empty()) return;
  const auto init = [&](std::size_t i, Term s) {
    b.stand_at(barriers_.at(static_cast<int32_t>(i)).span);
    const std::optional<int64_t> declared = barriers_.at(static_cast<int32_t>(i)).declared;
    const auto counted = measured_.arrivals.find(static_cast<int32_t>(i));
    const int64_t n = declared                              ? *declared
                      : counted == measured_.arrivals.end() ? 1
                                                            : counted->second;
    b.issue("mbarrier.init",
            {core::BarrierAt{core::BarriersId(i), s}, core::Integers{{b.number(n)}}});
  };
  b.stand_at(barriers_.at(0).span);
  b.when(equals(b.at().warp, b.number(0)), [&] {
    b.elected([&] {
      for (std::size_t i = 0; i < measured_.maps; ++i)
        b.issue("tma.prefetch_map", {core::MapRef{core::MapId(i)}});
      for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
        for (end = i; end < all.size() && all[end].count == all[i].count;) ++end;
        const Term upper = b.number(all[i].count);
        b.unrolled(counter_name("s", b.number(0), upper), all[i].count, [&](Term s) {
          for (std::size_t j = i; j < end; ++j) init(j, s);
        });
      }
      b.issue("fence.mbarrier_init");
    });
  });
  if (cluster_ > 1) {
    b.issue("cluster.arrive_relaxed");  // the fence above has released what was initialized
    b.issue("cluster.wait");
  } else {
    b.issue("barrier.sync",
            {core::Integers{{b.number(0)}}, core::Integers{{b.number(b.kernel().threads)}}});
  }
}

Result<int> Elaborator::barrier_id(bool of_warpgroup, Span span) {
  if (threads_.role.empty() && !of_warpgroup) return 0;
  int& id = of_warpgroup ? threads_.group_barrier_id : threads_.barrier_id;
  if (id == 0) {
    TESSERA_TRY(first, named_barriers(of_warpgroup ? threads_.warpgroups() : 1, span));
    id = first;
  }
  return id;
}

Result<int> Elaborator::named_barriers(int64_t count, Span span) {
  if (count < 1 || next_barrier_id_ + count > 16)
    return error(fail(wrong_place, "the kernel has more than 16 named barriers")
                     .label(label(span))
                     .help("let fewer roles and warpgroups have a `sync` of their own"));
  return std::exchange(next_barrier_id_, next_barrier_id_ + static_cast<int>(count));
}

/// One site of each role reaches a phase, or all of them: what `arrivals=` says has to be either.
Result<int64_t> Elaborator::arrivals_of(const BarrierFacts& facts, const std::string& name) {
  std::map<std::string, std::pair<int64_t, int64_t>> roles;  // of one site, of all sites
  bool known = !facts.sites.empty();
  for (const BarrierFacts::Site& s : facts.sites) {
    known = known && s.arrivals.has_value();
    auto& [one, sum] = roles[s.role];
    one = std::max(one, s.arrivals.value_or(0));
    sum += s.arrivals.value_or(0);
  }
  int64_t once = 0, all = 0;
  for (const auto& [role, n] : roles) {
    once += n.first;
    all += n.second;
  }
  if (!facts.declared && !known)
    return error(fail(wrong_arrivals, "nobody can tell how many arrivals `{}` has in a phase", name)
                     .label(label(facts.span))
                     .help("write `arrivals=`"));
  if (!facts.declared || !known || *facts.declared == once || *facts.declared == all)
    return facts.declared.value_or(once);
  Diagnostic d = fail(wrong_arrivals, "`{}` does not get the arrivals that it waits for", name)
                     .label(label(facts.span))
                     .expect("arrivals={}, as its phases get", once)
                     .but_found("arrivals={}", *facts.declared)
                     .help("leave `arrivals` out: they are counted");
  for (const BarrierFacts::Site& s : facts.sites)
    d.labels.push_back(label(s.span, fmt::format("{} a phase from `{}`", *s.arrivals,
                                                 s.role.empty() ? "the block" : s.role)));
  return error(std::move(d));
}

Result<Measured> Elaborator::measure(const core::Kernel& draft) {
  Measured out;
  out.maps = draft.maps.size();
  out.named = named_;
  out.threads = roles_ > 0 ? 32 * warps_used_ : threads_asked_;
  if (roles_ > 0 && threads_asked_ > 0 && threads_asked_ != out.threads)
    return error(fail(wrong_call, "the roles have other threads than `@kernel` says")
                     .label(label(kernel_.decorators.front().span))
                     .expect("threads={}, as the roles have together", out.threads)
                     .but_found("threads={}", threads_asked_)
                     .help("leave `threads` out: the roles say it"));
  if (out.threads == 0)
    return error(fail(wrong_call, "nothing says how many threads the kernel has")
                     .label(label(kernel_.name_span))
                     .help("write `@kernel(threads=128)`, or let `role`s do the work"));
  if (out.threads > 1024)
    return error(fail(wrong_call, "the kernel has more threads than a block may have")
                     .label(label(kernel_.name_span))
                     .expect("at most 1024")
                     .but_found("{}", out.threads)
                     .help("give the roles fewer warpgroups"));
  if (rest_warps_ > 0) {
    const int64_t left = launch_registers(out.threads, min_blocks_) * out.threads / 32 -
                         fixed_registers_ -
                         (out.threads / 32 - fixed_warps_ - rest_warps_) *
                             launch_registers(out.threads, min_blocks_);
    out.rest = std::min(left / rest_warps_ / 8 * 8, most_registers);
  }
  for (const auto& [id, facts] : barriers_) {
    TESSERA_TRY(n, arrivals_of(facts, draft.barriers.at(id).name));
    out.arrivals[id] = n;
  }
  return out;
}

}  // namespace tessera::language
