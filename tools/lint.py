"""clang-tidy over C++ files: `tools/lint.py BUILD [--alone] FILE...`, each by itself or several at a time.

Four fifths of the time of one file are the standard library's and nlohmann's headers, so files that are compiled alike are
put behind each other into one text, a dozen at a time. The text is a main file for clang-tidy, which treats included files
with less care. What counts is what it says of a file alone: the files of which it says anything are read again by themselves.
What a text hides is a header that a file forgets and one before it includes; a file by itself, and its build, show that.
"""

import collections
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from units import all_names, units

MOST = 12  # files of a text
# clang cannot read g++'s precompiled header and includes its text instead, without a word.
CALL = [
    "clang-tidy-19",
    "--quiet",
    "--config-file=.clang-tidy",
    "--extra-arg=-Wno-ignored-gch",
    "--extra-arg=-Wno-unknown-warning-option",
    "--extra-arg=-Wno-error",
]


def flags_of(build: pathlib.Path) -> dict[str, tuple[str, ...]]:
    """By file, what the build compiles it with."""
    result = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(entry["command"])[1:]
        if words and words[0].endswith("c++"):
            words = words[1:]
        kept = [word for i, word in enumerate(words) if word not in ("-o", "-c") and words[i - 1] not in ("-o", "-c")]
        result.setdefault(os.path.relpath(entry["file"]), tuple(kept))
    return result


def batches(files: list[str], flags: dict[str, tuple[str, ...]], most: int) -> list[list[str]]:
    """Files of the same flags that have no names in common; a program's main file stands alone."""
    alike = collections.defaultdict(list)
    for file in sorted(files):
        main = re.search(r"^int main\(", pathlib.Path(file).read_text(), re.M)
        alike[flags[file], file if main else ""].append(pathlib.Path(file))
    result = [
        [str(file) for file in unit]
        for group in alike.values()
        for unit in units({file: all_names(file) for file in group}, most)
    ]
    return sorted(result, key=len, reverse=True)


def tidy(file: str, flags: tuple[str, ...]) -> str:
    ran = subprocess.run([*CALL, file, "--", *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if ran.returncode != 0 and not ran.stdout.strip():
        return f"{file}: clang-tidy ended with {ran.returncode} and said nothing\n"
    return ran.stdout


def named(said: str, text: str, batch: list[str]) -> list[str]:
    """The files of a text that something is said of; all of them where it is no text that compiles, or of a header."""
    places = re.findall(r"^(\S+):(\d+):\d+: (?:error|warning): (.*)$", said, re.M)
    if not places or any(path != text or "[clang-diagnostic-error]" in what for path, _, what in places):
        return batch
    owners = [file for file in batch for _ in pathlib.Path(file).read_text().splitlines()]
    found = {owners[int(line) - 1] for _, line, _ in places}
    return [file for file in batch if file in found]


def lint(batch: list[str], flags: tuple[str, ...], folder: pathlib.Path) -> str:
    if len(batch) > 1:
        text = (folder / (re.sub(r"\W", "_", batch[0]) + ".cpp")).resolve()
        text.write_text("".join(pathlib.Path(file).read_text() for file in batch))
        said = tidy(str(text), flags)
        batch = named(said, str(text), batch) if said else []
    return "".join(tidy(file, flags) for file in batch)


def main() -> int:
    build, files = pathlib.Path(sys.argv[1]), [word for word in sys.argv[2:] if word != "--alone"]
    most = 1 if "--alone" in sys.argv else MOST
    flags = flags_of(build)
    if unknown := [file for file in files if file not in flags]:
        print("\n".join(f"{file}: no target of the build compiles it" for file in unknown))
        return 1
    folder = build / "lint"
    folder.mkdir(exist_ok=True)
    found = False
    with ThreadPoolExecutor(int(os.environ.get("TESSERA_JOBS", os.cpu_count() or 1))) as pool:
        for said in pool.map(lambda batch: lint(batch, flags[batch[0]], folder), batches(files, flags, most)):
            found = found or bool(said)
            print(said, end="", flush=True)
    return int(found)


if __name__ == "__main__":
    sys.exit(main())
