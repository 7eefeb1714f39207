#include "llm/archive.h"

#include <fstream>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"

namespace tessera::llm {
namespace fs = std::filesystem;
namespace {

inline constexpr Code bad_archive{"TS0739", "mind.bad_archive"};
constexpr std::string_view schema = "tessera.mind/1";

fs::path file_of(const fs::path& folder) {
  return folder / "turns.jsonl";
}

Diagnostic other_run(const fs::path& folder, const std::string& what) {
  return fail(bad_archive, "the archive {} is of another run: {}", folder.string(), what)
      .help("give another folder with --archive DIR, or move this one away");
}

/// The first field in which the two differ, with both values.
std::string difference(const Json& before, const Json& now) {
  for (const auto& [key, value] : now.items()) {
    const Json had = before.contains(key) ? before.at(key) : Json();
    if (had != value) return fmt::format("{} was {}, and is {}", key, had.dump(), value.dump());
  }
  return "";
}

/// Folder, folder-1, folder-2: the first that is not there.
fs::path aside(const fs::path& folder) {
  int n = 1;
  while (fs::exists(folder.string() + fmt::format("-{}", n))) ++n;
  return folder.string() + fmt::format("-{}", n);
}

}  // namespace

Status Archive::read() {
  const std::string text = read_file(file_of(folder_));
  // A line that was being written when the run was killed has no end; what it told happens again.
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  if (whole < text.size() && use_ == Use::record) fs::resize_file(file_of(folder_), whole);
  int number = 0;
  for (const std::string& line : split(text.substr(0, whole), '\n')) {
    ++number;
    if (line.empty()) continue;
    const Json record = try_parse_json(line);
    if (!record.is_object() || !record.contains("kind") || !record.contains("at")) {
      return error(fail(bad_archive, "line {} of {} is no record of a run", number,
                        file_of(folder_).string())
                       .help("cut the file before that line, and the run goes on from there"));
    }
    before_ = record.at("at");
    const std::string kind = record.at("kind");
    if (kind == "run") {
      if (record.at("schema") != schema)
        return error(other_run(folder_, record.at("schema").dump()));
      of_ = record.at("of");
    } else if (kind == "note") {
      finished_ = record.at("event") == "finished";
      stopped_ = record.at("event") == "stopped" ? record.at("why").get<std::string>() : "";
    } else {
      records_.push_back(record);
    }
  }
  return {};
}

Result<Json> Archive::run_of(const fs::path& folder) {
  Archive a(folder, Use::replay);
  if (!fs::is_regular_file(file_of(folder))) {
    return error(
        fail(bad_archive, "there is no archived run in {}", folder.string())
            .expect("a folder with turns.jsonl, as `tessera optimize --mind llm` writes it")
            .help("it is OUTPUT/mind unless --archive said otherwise"));
  }
  TESSERA_CHECK(a.read());
  return a.of_;
}

Result<Archive> Archive::open(const fs::path& folder, const Json& of, Use use) {
  Archive a(folder, use);
  const bool there = fs::is_regular_file(file_of(folder));
  if (use == Use::replay) TESSERA_CHECK(run_of(folder));
  if (there) TESSERA_CHECK(a.read());
  if (there && use == Use::record && (a.finished_ || a.records_.empty())) {
    // What has no turn is nothing to go on with.
    if (a.records_.empty())
      fs::remove(file_of(folder));
    else
      fs::rename(folder, aside(folder));
    a = Archive(folder, use);
  }
  if (!a.of_.is_null()) {
    if (const std::string other = difference(a.of_, of); !other.empty())
      return error(other_run(folder, other));
    a.note("resumed");
    return a;
  }
  if (use == Use::replay) return error(other_run(folder, "its first line is missing"));
  fs::create_directories(folder);
  a.of_ = of;
  a.append({{"kind", "run"}, {"schema", schema}, {"of", of}});
  return a;
}

void Archive::append(Json record) {
  record["at"] = before_ + seconds_since(begin_);
  record["when"] = now_utc();
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::ofstream out(file_of(folder_), std::ios::binary | std::ios::app);
  out << line << std::flush;
  if (!out)
    throw fs::filesystem_error("the archive cannot be written", file_of(folder_),
                               std::make_error_code(std::errc::io_error));
}

Result<std::optional<Json>> Archive::once(const std::string& kind, const std::string& about,
                                          const std::function<Result<Json>()>& make) {
  if (repeats()) {
    const Json& record = records_[next_];
    const std::string had = record.value("about", "");
    if (record.at("kind") != kind || had != about) {
      return error(other_run(
          folder_, fmt::format("its turn {} is a {} about {}, and a {} about {} "
                               "comes now",
                               next_ + 1, record.at("kind").get<std::string>(), had, kind, about)));
    }
    ++next_;
    return std::optional<Json>(record.at("data"));
  }
  if (replays()) return std::optional<Json>();
  TESSERA_TRY(made, make());
  append({{"kind", kind}, {"about", about}, {"data", made}});
  return std::optional<Json>(std::move(made));
}

void Archive::note(const std::string& event, const Json& more) {
  if (replays()) return;
  Json record = {{"kind", "note"}, {"event", event}};
  for (const auto& [key, value] : more.items()) record[key] = value;
  append(std::move(record));
}

void Archive::finish(const fs::path& folder, const Json& metrics) {
  Archive a(folder, Use::record);
  if (a.read()) a.note("finished", {{"metrics", metrics}});
}

}  // namespace tessera::llm
