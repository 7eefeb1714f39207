#include "base/python_packages.h"

#include <cstdlib>
#include <gtest/gtest.h>

#include "base/files.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

// One variable of the environment for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* was = std::getenv(name)) before_ = was;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(PythonPackages, ComeInPythonsOrder) {
  const TemporaryFolder place;
  const fs::path venv = place.path() / "venv", home = place.path() / "home";
  const fs::path own = venv / "lib/python3.12/site-packages";
  const fs::path debian = venv / "lib/python3.12/dist-packages";
  const fs::path user = home / ".local/lib/python3.12/site-packages";
  for (const fs::path& p : {own, debian, user, venv / "lib/other/site-packages"})
    fs::create_directories(p);
  const Variable path("PYTHONPATH", "/first::/second"), of_user("HOME", home.string());
  EXPECT_EQ(python_packages(venv / "bin/python"),
            (std::vector<fs::path>{"/first", "/second", own, debian, user}));
  EXPECT_EQ(python_packages({}), (std::vector<fs::path>{"/first", "/second", user}));
}

}  // namespace
}  // namespace tessera
