// tessera-sandbox POLICY.json-text -- PROGRAM ARGUMENTS...: runs a program confined (policy.h).
// tessera-sandbox --ask: what this machine has, as JSON.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sandbox/launcher/launcher.h"

namespace tessera::sandbox {

void refuse(const std::string& what) {
  std::fprintf(stderr, "tessera-sandbox: %s\n", what.c_str());
  ::_exit(126);
}

void refuse_errno(const std::string& what) {
  refuse(what + ": " + std::strerror(errno));
}

void send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec io{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
  m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = room, m.msg_controllen = sizeof room;
  cmsghdr* c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(c), &descriptor, sizeof(int));
  if (::sendmsg(socket, &m, MSG_NOSIGNAL) != 1) refuse_errno("the watcher is gone");
}

int take_descriptor(int socket) {
  char byte = 0;
  iovec io{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
  msghdr m{};
  m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = room, m.msg_controllen = sizeof room;
  if (::recvmsg(socket, &m, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* c = CMSG_FIRSTHDR(&m);
  if (c == nullptr || c->cmsg_type != SCM_RIGHTS) return -1;
  int out = -1;
  std::memcpy(&out, CMSG_DATA(c), sizeof(int));
  return out;
}

namespace {

const Mechanism* const all[] = {&namespaces, &landlock_alone};  // the strongest first

/// Whether a program runs under it here: it is tried.
std::string fault_of(const Mechanism& m) {
  int out[2];
  if (::pipe(out) != 0) return std::strerror(errno);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(out[1], 2);
    Policy p{.mechanism = m.name};
    p.readable = {"/bin", "/usr", "/lib", "/lib64", "/etc/ld.so.cache"};
    ::_exit(watch(p, m, {"/bin/true"}));
  }
  ::close(out[1]);
  std::string text;
  char chunk[512];
  for (ssize_t n = 0; (n = ::read(out[0], chunk, sizeof chunk)) > 0;)
    text.append(chunk, static_cast<std::size_t>(n));
  ::close(out[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? "it does not run /bin/true" : text;
}

int ask() {
  Json rows = Json::array();
  for (const Mechanism* m : all) {
    const std::string fault = fault_of(*m);
    rows.push_back({{"name", m->name},
                    {"summary", m->summary},
                    {"works", fault.empty()},
                    {"fault", fault},
                    {"missing", m->missing()}});
  }
  std::puts(Json{{"landlock", landlock_version()}, {"mechanisms", rows}}.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace tessera::sandbox

int main(int count, char** words) {
  using namespace tessera::sandbox;
  const std::vector<std::string> given(words + 1, words + count);
  if (given.size() == 1 && given[0] == "--ask") return ask();
  if (given.size() < 3 || given[1] != "--") refuse("usage: tessera-sandbox POLICY -- PROGRAM ...");
  const tessera::Json j = tessera::try_parse_json(given[0]);
  if (j.is_discarded()) refuse("the policy is no JSON");
  Policy policy;
  try {
    policy = policy_from_json(j);
  } catch (const tessera::Json::exception& e) {
    refuse(e.what());
  }
  for (const Mechanism* m : all)
    if (policy.mechanism == m->name) return watch(policy, *m, {given.begin() + 2, given.end()});
  refuse("there is no mechanism " + policy.mechanism);
}
