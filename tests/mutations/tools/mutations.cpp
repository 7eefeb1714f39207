// Counts what the checker finds of one edit in each of several kernels: bench/suites/mutations.py.
//
//   mutations list ROOT                       subjects, one a line
//   mutations SUBJECT ROOT I/N   every N-th mutant from the I-th on, a JSON object a line
//   mutations correct ROOT I/N                right kernels, the same way
#include <fmt/format.h>
#include <iostream>

#include "mutations/study.h"

namespace {

using namespace tessera;
using namespace tessera::mutations;

void say(const Json& row) {
  std::cout << row.dump() << '\n' << std::flush;
}

int studied(const MutationSubject& subject, const std::string& root, std::size_t first,
            std::size_t step, const std::string& only) {
  const Result<core::Kernel> kernel = subject.make(root);
  if (!kernel) {
    std::cerr << to_text(kernel.error());
    return 1;
  }
  const Study study(*kernel, {});
  if (!study.why_not().empty()) {
    std::cerr << subject.name << " cannot be studied: " << study.why_not() << "\n";
    return 1;
  }
  const std::vector<core::testing::Mutant> all = mutants_of(*kernel, subject.storages);
  for (std::size_t i = first; i < all.size(); i += step)
    if (only.empty() || all[i].name == only) say(to_json(study.judge(all[i])));
  return 0;
}

int proved(const std::string& root, std::size_t first, std::size_t step) {
  const std::vector<MutationSubject>& all = correct_variants();
  for (std::size_t i = first; i < all.size(); i += step) {
    const Result<core::Kernel> kernel = all[i].make(root);
    if (!kernel) {
      std::cerr << all[i].name << ": " << to_text(kernel.error());
      return 1;
    }
    say(to_json(judge_correct(all[i].name, *kernel)));
  }
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> args(words + 1, words + count);
  if (args.size() == 2 && args[0] == "list") {
    for (const MutationSubject& s : mutation_subjects()) std::cout << s.name << "\n";
    return 0;
  }
  const std::size_t slash =
      args.size() == 3 || args.size() == 4 ? args[2].find('/') : std::string::npos;
  if (slash == std::string::npos) {
    std::cerr << "usage: mutations list ROOT | mutations SUBJECT|correct ROOT I/N [OPERATOR]\n";
    return 3;
  }
  const std::size_t first = std::stoul(args[2].substr(0, slash)) - 1;
  const std::size_t step = std::stoul(args[2].substr(slash + 1));
  if (first >= step) {
    std::cerr << "expected I/N with I from 1 to N, found " << args[2] << "\n";
    return 3;
  }
  if (args[0] == "correct") return proved(args[1], first, step);
  for (const MutationSubject& s : mutation_subjects())
    if (s.name == args[0]) return studied(s, args[1], first, step, args.size() == 4 ? args[3] : "");
  std::cerr << "no subject `" << args[0] << "`\n";
  return 3;
}
