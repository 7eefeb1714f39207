// What a confined process may do, and what became of it: the two texts that the engine and the
// launcher exchange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace tessera::sandbox {

/// Limits of 0 are none. Totals are over all processes of the sandbox.
struct Policy {
  std::string mechanism;              // of mechanisms()
  std::vector<std::string> readable;  // files and folders, absolute; what is missing is left out
  std::vector<std::string> writable;  // folders; they exist
  std::vector<std::string> devices;   // "/dev/nvidia0"
  bool local_sockets = false;         // AF_UNIX, of any type; connecting too
  std::string report;                 // the file that the launcher writes at the end; may be empty
  int64_t cpu_seconds = 0;            // of one process: RLIMIT_CPU
  int64_t wall_seconds = 0;           //
  int64_t memory_bytes = 0;           // resident, without files that are mapped: a total
  int64_t processes = 0;              // threads count
  int64_t file_bytes = 0;             // of one file
  int64_t folder_bytes = 0;           // of all writable folders together; of /tmp and /dev/shm each
};

/// Something that was tried and not allowed.
struct Attempt {
  std::string what;    // "read", "write", "network", "other process", "signal", "privilege"
  std::string detail;  // a path, or the name of the system call
  double at = 0;       // seconds of CLOCK_MONOTONIC
};

struct Report {
  std::vector<Attempt> attempts;  // each once, at most 64
  std::string limit;              // that ended it: "memory", "disk", "time", "processes"; or ""
  int64_t peak_memory = 0;        // bytes
  int64_t peak_processes = 0;     //
  double seconds = 0;             // by the launcher's clock
};

Json to_json(const Policy& p);
/// Throws Json::exception where a field is of another type.
Policy policy_from_json(const Json& j);
Json to_json(const Report& r);
Report report_from_json(const Json& j);

}  // namespace tessera::sandbox
