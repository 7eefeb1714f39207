// The device side of a kernel as CUDA C++.
#pragma once

#include "lower/address.h"
#include "lower/expression.h"
#include "lower/flight.h"
#include "lower/instruction.h"
#include "lower/matrix.h"
#include "lower/ring.h"
#include "lower/text.h"
#include "lower/uses.h"

namespace tessera::lower {

/// What a launch hands over to the kernel, in its order: maps, then tensors, then integers.
struct Parameters {
  std::vector<core::MapId> maps;        // all
  std::vector<core::TensorId> tensors;  // those that some instruction addresses
  std::vector<Term> integers;           // those that some term has; perhaps `multiprocessors`
};

struct DeviceSide {
  std::string text;  // without the guards of tessera/sides.h
  Parameters parameters;
  std::string symbol;  // of the kernel
};

Result<DeviceSide> device_side(const core::Kernel& kernel, Ranges& ranges);

/// Writes the body; its parts are in device.cpp, device_issue.cpp and device_compute.cpp.
class Device {
 public:
  Device(const core::Kernel& kernel, Ranges& ranges);
  Result<DeviceSide> write();

 private:
  void refuse(Diagnostic d);
  std::string storage_name(std::string_view wanted) { return names_.claim(wanted); }
  void name_storages();
  void name_symbols();
  Parameters parameters() const;
  std::string signature(const DeviceSide& d) const;
  void write_head();

  // Terms that are computed once.
  std::vector<Wanted> wanted(const core::Op& op);
  std::vector<Wanted> wanted_of_element(const core::Compute& c) const;
  std::vector<Wanted> wanted_of(const core::Issue& i);
  void find_rings();
  void begin_rings(const core::For& l);
  void advance_rings(const core::For& l);
  void declare_before(Scope scope, int at);

  /// `of`: whose body it is, where that is a loop.
  void write(const core::Body& body, const core::For* of = nullptr);
  void write(const core::Op& op);
  void write(const core::For& l);
  void write(const core::If& b);
  void write(const core::Elected& e);
  std::size_t write_roles(const core::Body& body, std::size_t first);
  std::string condition_of(const core::Role& r);
  void write(const core::Role& r);
  void write(const core::Declare& d);
  void write(const core::Issue& i);
  void write(const core::Compute& c);
  void write(const core::Tag&) {}  // `lower` has taken these away
  void write(const core::AssertTag&) {}
  void write_origin(const core::Op& op);
  void unroll(const core::For& l);
  [[nodiscard]] bool first_differs(const core::For& l) const;
  void write_first(const core::For& l, const std::string& upper);
  struct Ends {
    Term condition, below, from;  // from: none where the branch is taken at the beginning alone
  };
  [[nodiscard]] Ends ends_of_branch(const core::For& l) const;
  void begin_sums(const core::For& l);
  void add_to_sums(const core::For& l);
  void write_loop(const core::For& l, const std::string& head);
  void meet();

  // Arguments of instructions: device_issue.cpp.
  Passed passed(const core::Issue& i, std::size_t operand);
  Passed address(const core::Issue& i, std::size_t operand, const core::SharedAt& at);
  Passed slice(const core::Issue& i, std::size_t operand, const core::Slice& s);
  Passed part(const core::Issue& i, const arch::Operand& o, const core::Slice& s);
  Passed integers(const core::Issue& i, std::size_t operand, const core::Integers& v);
  Passed global(const core::GlobalAt& at, bool loads);
  [[nodiscard]] std::pair<Term, Term> parts_in_text(Term t) const;
  [[nodiscard]] Term at_first(Term t) const;
  [[nodiscard]] Term bounds_in_text(Term t) const;
  std::string sum(const std::string& base, const SplitSum& offset, int64_t scale = 1);
  bool is_constant_in_text(Term t) const;
  void pin_registers();
  void take_off(const core::Issue& i);

  // Computes: device_compute.cpp.
  void check_runs(const core::Compute& c);
  std::vector<std::string> results_of(const core::Compute& c, const std::string& element,
                                      const std::string& prefix);
  std::string value_of(const core::Run& r, const std::string& element);
  std::string value_of(Term t);
  void keep(const core::Run& r, const std::string& element, const std::string& value);
  std::string slot_of(const core::Run& r, const std::string& element);
  bool in_pairs(const core::Compute& c) const;
  void write_elements(const core::Compute& c, const std::string& element, bool pairs);

  const core::Kernel& kernel_;
  Ranges& ranges_;
  Names names_;
  Expressions expressions_;
  Instructions instructions_;
  Text text_{1};
  std::string before_, after_;  // of the next instruction: lines around its call
  std::optional<Diagnostic> failure_;
  const core::Op* op_ = nullptr;
  std::optional<Uses> uses_;
  std::map<const core::For*, std::vector<Ring>> rings_;
  std::map<const Ring*, std::vector<std::string>> ring_names_;  // the slot's, perhaps the round's
  std::vector<std::string> maps_, tensors_, shared_, barriers_, registers_;
  std::set<int32_t> addressed_;  // tensors
  std::set<int32_t> in_flight_;  // registers that some wgmma has while it runs
  Flight flight_;
  std::vector<core::RegistersId> declared_;  // in the bodies that are open
  std::set<const term::Symbol*> in_text_;    // counters that are constants of the text
  std::map<const term::Node*, bool> known_;  // conditions that the text around decides
  std::set<std::string> helpers_;            // of helpers.h, by name
  std::string elected_;                      // the function of that name, once it is needed
  bool apart_ = false;                       // the lanes of a warp may be at different places
  int line_ = 0;                             // of the author's text, the last one told
};

}  // namespace tessera::lower
