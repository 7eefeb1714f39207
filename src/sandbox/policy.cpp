#include "sandbox/policy.h"

namespace tessera::sandbox {

Json to_json(const Policy& p) {
  return {{"mechanism", p.mechanism},         {"readable", p.readable},
          {"writable", p.writable},           {"devices", p.devices},
          {"local_sockets", p.local_sockets}, {"report", p.report},
          {"cpu_seconds", p.cpu_seconds},     {"wall_seconds", p.wall_seconds},
          {"memory_bytes", p.memory_bytes},   {"processes", p.processes},
          {"file_bytes", p.file_bytes},       {"folder_bytes", p.folder_bytes}};
}

Policy policy_from_json(const Json& j) {
  Policy p;
  j.at("mechanism").get_to(p.mechanism);
  j.at("readable").get_to(p.readable);
  j.at("writable").get_to(p.writable);
  j.at("devices").get_to(p.devices);
  j.at("local_sockets").get_to(p.local_sockets);
  j.at("report").get_to(p.report);
  j.at("cpu_seconds").get_to(p.cpu_seconds);
  j.at("wall_seconds").get_to(p.wall_seconds);
  j.at("memory_bytes").get_to(p.memory_bytes);
  j.at("processes").get_to(p.processes);
  j.at("file_bytes").get_to(p.file_bytes);
  j.at("folder_bytes").get_to(p.folder_bytes);
  return p;
}

Json to_json(const Report& r) {
  Json attempts = Json::array();
  for (const Attempt& a : r.attempts)
    attempts.push_back({{"what", a.what}, {"detail", a.detail}, {"at", a.at}});
  return {{"attempts", std::move(attempts)},
          {"limit", r.limit},
          {"peak_memory", r.peak_memory},
          {"peak_processes", r.peak_processes},
          {"seconds", r.seconds}};
}

Report report_from_json(const Json& j) {
  Report r;
  for (const Json& a : j.at("attempts"))
    r.attempts.push_back({.what = a.at("what"), .detail = a.at("detail"), .at = a.at("at")});
  j.at("limit").get_to(r.limit);
  j.at("peak_memory").get_to(r.peak_memory);
  j.at("peak_processes").get_to(r.peak_processes);
  j.at("seconds").get_to(r.seconds);
  return r;
}

}  // namespace tessera::sandbox
