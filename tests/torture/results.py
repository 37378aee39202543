# SPDX-License-Identifier: MIT
"""The file of results, one JSON object a line, and the table that is made of it."""
import json
import re

from table import HERE

DOCUMENT = HERE.parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- results: written by scripts/torture --render -->", "<!-- end of results -->"


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
    """The result line for people."""
    head = f"{result['name']:<20} {result['verdict']:<7}"
    if "crosscheck" not in result:
        return f"{head} {'; '.join(result['errors'])}"
    checked = result["crosscheck"]
    text = (f"{head} {result['version'] or '-'}: status {result['bare_status']}"
            f"/{result['recorded_status']}/{result['crosscheck_status']}"
            f" output {'equal' if result['equal'] else 'DIFFERS'}"
            f" traces={checked['traces']} crosschecked={checked['crosschecked']}"
            f" mismatches={checked['mismatches']} lost={checked['lost']}"
            f" truncated={checked['truncated']}"
            + (f" ({result['truncated_reason']})" if result["truncated_reason"] else "")
            + f" stale={checked['stale']} mode={result['mode']} {result['seconds']:.0f} s")
    return "\n    ".join([text, *result["errors"]])


def _cell(text):
    return str(text).replace("|", "\\|") or "-"


def _row(name, results):
    """One line for all runs of an entry; its version is that of the last run."""
    ran = [result for result in results if "crosscheck" in result]
    if not ran:
        return None
    sums = {count: sum(result["crosscheck"][count] for result in ran)
            for count in ("crosschecked", "mismatches", "lost", "truncated", "stale")}
    failed = sum(result["verdict"] == "FAILED" for result in ran)
    reason = ran[-1]["truncated_reason"] if sums["truncated"] else ""
    cells = [name, ran[-1]["version"], ran[-1]["mode"], len(ran), failed, sums["crosschecked"],
             sums["mismatches"], sums["lost"], f"{sums['truncated']}{': ' * bool(reason)}{reason}",
             sums["stale"]]
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


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


def render(results):
    """Puts the table into docs/reliability.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.S)
    if not pattern.search(text):
        raise SystemExit(f"{DOCUMENT} has no place for the table: {BEGIN}")
    replacement = f"{BEGIN}\n{table(results)}\n{END}"
    DOCUMENT.write_text(pattern.sub(lambda _: replacement, text), encoding="utf-8")
