# SPDX-License-Identifier: MIT
"""The file of results, one JSON object a line, and the table that is made of it."""
import json
import re
import subprocess

from table import HERE

DOCUMENT = HERE.parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- results: written by scripts/torture --render -->", "<!-- end of results -->"


def git_commit():
    """The commit of the tree, with -dirty if files differ from it."""
    result = subprocess.run(["git", "-C", str(HERE), "describe", "--always", "--dirty"],
                            capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def read(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.strip()]


def append(path, result):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(result) + "\n")


def crosschecked(results):
    return sum(result["crosscheck"]["crosschecked"] for result in results if "crosscheck" in result)


def line(result):
    """The result as a line that people read."""
    head = f"{result['name']:<20} {result['verdict']:<7}"
    if "crosscheck" not in result:
        return f"{head} {'; '.join(result['errors'])}"
    checked = result["crosscheck"]
    text = (f"{head} {result['version'] or '-'}: status {result['bare_status']}"
            f"/{result['recorded_status']}/{result['crosscheck_status']}"
            f" output {'equal' if result['equal'] else 'DIFFERS'}"
            f" folded {'equal' if result['folded_equal'] else 'differ'}"
            f" traces={checked['traces']} crosschecked={checked['crosschecked']}"
            f" mismatches={checked['mismatches']} lost={checked['lost']}"
            f" truncated={checked['truncated']}"
            + (f" ({result['truncated_reason']})" if result["truncated_reason"] else "")
            + f" stale={checked['stale']} mode={result['mode']} {result['seconds']:.0f} s")
    return "\n    ".join([text, *result["errors"]])


def cells(values):
    """A line of a table."""
    return "| " + " | ".join(str(value).replace("|", "\\|") or "-" for value in values) + " |"


def _row(name, results):
    """One line for all runs of an entry; its version is that of the last run."""
    ran = [result for result in results if "crosscheck" in result]
    if not ran:
        return None
    sums = {count: sum(result["crosscheck"][count] for result in ran)
            for count in ("crosschecked", "mismatches", "lost", "truncated", "stale")}
    failed = sum(result["verdict"] == "FAILED" for result in ran)
    reason = ran[-1]["truncated_reason"] if sums["truncated"] else ""
    return cells([name, ran[-1]["version"], ran[-1]["mode"], len(ran), failed,
                  sums["crosschecked"], sums["mismatches"], sums["lost"],
                  f"{sums['truncated']}{': ' * bool(reason)}{reason}", sums["stale"]])


def table(results):
    names = list(dict.fromkeys(result["name"] for result in results))
    rows = [_row(name, [result for result in results if result["name"] == name])
            for name in names]
    rows = [row for row in rows if row]
    dates = sorted(result["date"] for result in results)
    commits = list(dict.fromkeys(result["commit"] for result in results))
    return "\n".join([
        f"{len(rows)} programs, {crosschecked(results):,} crosschecked traces, "
        f"{dates[0][:10]} to {dates[-1][:10]}, commit{'s' * (len(commits) > 1)} "
        f"{', '.join(commits)}.", "",
        "| program | version | mode | runs | failed | traces | mismatches | lost | truncated"
        " | stale |",
        "|---|---|---|---|---|---|---|---|---|---|", *rows])


def put(text, begin, end):
    """Puts the text into docs/reliability.md, between these two lines."""
    document = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    if not pattern.search(document):
        raise SystemExit(f"{DOCUMENT} has no place for the table: {begin}")
    replacement = f"{begin}\n{text}\n{end}"
    DOCUMENT.write_text(pattern.sub(lambda _: replacement, document), encoding="utf-8")


def render(results):
    """Puts the table into docs/reliability.md."""
    put(table(results), BEGIN, END)
