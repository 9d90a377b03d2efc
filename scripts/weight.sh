#!/usr/bin/env bash
# Prints how much there is of code, tests and documentation, beside the budget of
# each, and fails above one. --parts lists the parts of the tree.
#
# A line of Go counts if it is neither blank nor a comment, twice if it is longer
# than 150 characters. Lines of JavaScript, HTML, CSS, Lua, shell and txtar count
# likewise, so that nothing is moved out of sight. A budget is raised in a commit
# of its own, which says what that buys.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 - "$@" <<'PY'
import re, subprocess, sys

BUDGETS = [  # what, at most
    ("code", 60880),
    ("tests", 47740),
    ("internal/test", 15410),
    ("beside Go", 4710),
    ("words of docs", 55215),
    ("settings", 24),
    ("requirements", 0),
]
BESIDE = {"js": "//", "html": "<!--", "css": "/*", "lua": "--", "sh": "#", "txtar": "#"}

def lines(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read().splitlines()

def go(path):
    n, inside = 0, False
    for line in lines(path):
        text = line.strip()
        if inside:
            inside = "*/" not in text
        elif text.startswith("/*"):
            inside = "*/" not in text
        elif text and not text.startswith("//"):
            n += 2 if len(line) > 150 else 1
    return n

def beside(path, mark):
    return sum(2 if len(l) > 150 else 1 for l in lines(path) if l.strip() and not l.strip().startswith(mark))

def settings():
    structs = re.findall(r"^type (?:Options|LockOptions|Cluster) struct \{\n(.*?)^\}", "\n".join(lines("options.go")), re.S | re.M)
    return sum(len(re.findall(r"^\t[A-Z]\w* ", body, re.M)) for body in structs)

got = dict.fromkeys((name for name, _ in BUDGETS), 0)
parts = {}
for path in subprocess.check_output(["git", "ls-files"], text=True).splitlines():
    end = path.rsplit(".", 1)[-1]
    if end == "go":
        n, kind = go(path), "tests" if path.endswith("_test.go") else "code"
        got[kind] += n
        if path.startswith("internal/test/"):
            got["internal/test"] += n
        top = path.split("/")
        part = "/".join(top[:2]) if len(top) > 2 else top[0] if len(top) > 1 else "."
        parts.setdefault(part, {"code": 0, "tests": 0})[kind] += n
    elif end in BESIDE:
        got["beside Go"] += beside(path, BESIDE[end])
    elif end == "md" and path.startswith("docs/") and not path.startswith("docs/testing/bench/"):
        got["words of docs"] += len(" ".join(lines(path)).split())
got["settings"] = settings()
got["requirements"] = sum(1 for l in lines("go.mod") if re.match(r"^(require |\t)\S+ v", l))

if "--parts" in sys.argv[1:]:
    for part, n in sorted(parts.items()):
        print(f"{n['code']:7} {n['tests']:7}  {part}")
over = 0
for name, most in BUDGETS:
    above = got[name] > most
    over += above
    print(f"{got[name]:7} of {most:6}  {name}{'  ABOVE ITS BUDGET' if above else ''}")
sys.exit(1 if over else 0)
PY
