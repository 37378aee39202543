# SPDX-License-Identifier: MIT
"""Returns what is wrong with the runs of an entry: a list of texts, empty if nothing is wrong."""


def _normalised(data, program):
    text = data.decode("utf-8", errors="replace").rstrip("\n")
    for expression, replacement in program.normalise:
        text = expression.sub(replacement, text)
    return text


def _status(value):
    return "out of time" if value is None else str(value)


def outputs_differ(program, bare, recorded):
    """The names of the outputs that differ from those of the bare run."""
    names = {"both": ("stdout", "stderr"), "stdout": ("stdout",), "none": ()}[program.compare]
    return [name for name in names
            if _normalised(getattr(bare, name), program)
            != _normalised(getattr(recorded, name), program)]


def _behaviour(program, bare, recorded, how):
    errors = []
    if recorded.status is None:
        errors.append(f"{how}: hangs, or takes more than {program.timeout} s")
    elif recorded.status != bare.status:
        errors.append(f"{how}: exit status {recorded.status}, bare {_status(bare.status)}")
    for name in outputs_differ(program, bare, recorded):
        errors.append(f"{how}: another {name} than bare")
    return errors


def _record(program, scale, run, how):
    counts = run.counts
    errors = []
    if run.status is not None and run.reported < run.reports:
        errors.append(f"{how}: {run.reports - run.reported} of {run.reports} reports are missing")
    if counts["traces"] == 0:
        errors.append(f"{how}: no trace")
    elif counts["traces"] < program.least * scale:
        errors.append(f"{how}: {counts['traces']} traces, expected {program.least * scale}")
    if run.modes and program.mode not in ("any", run.modes[0]):
        errors.append(f"{how}: mode {run.modes[0]}, expected {program.mode}")
    if run.modes and run.modes[0] != "patch" and not any(
            remark.startswith("note:") for remark in run.remarks):
        errors.append(f"{how}: mode {run.modes[0]} without a note that says why")
    for name in ("lost", "truncated", "stale"):
        if counts[name] > 0 and not getattr(program, name):
            errors.append(f"{how}: {name}={counts[name]} without a known reason")
    return errors


def _crosscheck(program, run):
    counts = run.counts
    errors = []
    if counts["mismatches"] > 0:
        errors.append(f"crosscheck: mismatches={counts['mismatches']}")
    if counts["crosschecked"] < counts["traces"] and not program.unchecked:
        errors.append(f"crosscheck: {counts['traces'] - counts['crosschecked']} of "
                      f"{counts['traces']} traces were not checked")
    return errors


def folded_difference(recorded, checked):
    """The first stack whose weight is not the same in both runs, or "" if all are equal."""
    if not recorded.folded or not checked.folded:
        return "a run has none"
    if recorded.folded == checked.folded:
        return ""
    differing = recorded.folded.keys() | checked.folded.keys()
    stack = min(s for s in differing if recorded.folded[s] != checked.folded[s])
    return f"{recorded.folded[stack]} and {checked.folded[stack]} at {stack[-300:]}"


def judge(program, scale, bare, recorded, checked):
    if bare.status is None:
        return [f"bare: takes more than {program.timeout} s; the entry is wrong"]
    if bare.status != program.status:
        return [f"bare: exit status {bare.status}, expected {program.status}; the entry is wrong: "
                + bare.stderr.decode(errors="replace")[-300:]]
    if program.refused:
        right = recorded.status not in (None, 0) and recorded.counts["traces"] == 0
        return [] if right else [f"recorded: not refused, exit status {_status(recorded.status)}"]
    errors = _behaviour(program, bare, recorded, "recorded")
    errors += _record(program, scale, recorded, "recorded")
    errors += _behaviour(program, bare, checked, "crosscheck")
    errors += _record(program, scale, checked, "crosscheck")
    errors += _crosscheck(program, checked)
    difference = folded_difference(recorded, checked) if program.deterministic else ""
    return errors + [f"crosscheck: other folded stacks: {difference}"] * bool(difference)
