# SPDX-License-Identifier: MIT
"""Profiles in memory, readers of the formats, and random files: pprof with all that it can
say, speedscope and Firefox as other programs write them. Nothing here is incstack's own."""
import gzip
import json
from decimal import Decimal
from fractions import Fraction
from math import floor

import otlp_file
from pprof_message import PprofWriter, field, fields, numbers, varint

FORMATS = ("folded", "pb.gz", "speedscope.json", "firefox.json", "otlp.pb")
META = ("program", "mode", "time_ns", "duration_ns", "lost", "truncated", "pruned")


class Profile:
    """samples: {(labels, stack): weights}; a frame is (name, file, line, inlined, place), where
    the place, which only pprof has, may be left out."""

    def __init__(self, kinds):
        self.kinds = kinds
        self.samples = {}
        self.attributes = {"mappings": (), "functions": (), "comments": (), "period": (), "threads": (),
                           "meta": tuple("" if k in META[:2] else 0 for k in META)}

    def add(self, labels, stack, weights):
        stack = tuple(frame if len(frame) == 5 else (*frame, ()) for frame in stack)
        sums = self.samples.setdefault((labels, stack), [0] * len(weights))
        for k, weight in enumerate(weights):
            sums[k] += weight

    def without(self, lost):
        """What can be compared if all that is lost."""
        kinds = self.kinds[:1] if "kinds" in lost else self.kinds
        samples = {}
        for (labels, stack), weights in self.samples.items():
            weights = weights[:len(kinds)]
            if not any(weights):
                continue
            key = (() if "labels" in lost else labels,
                   tuple(blank(frame, lost) for frame in stack))
            sums = samples.setdefault(key, [0] * len(weights))
            for k, weight in enumerate(weights):
                sums[k] += weight
        if "fractions" in lost:  # the sum is rounded, no context by more than one
            rounded = [floor(sum(w[k] for w in samples.values()) + Fraction(1, 2))
                       for k in range(len(kinds))]
            samples = {"sums": rounded}
        return (len(kinds) if "unit" in lost else tuple(kinds), samples,
                {k: v for k, v in self.attributes.items() if k not in lost})


def blank(frame, lost):
    name, file, line, inlined, place = frame
    if "names" in lost:
        name = name.replace(";", ":").replace("\n", " ")
    return (name, "" if "file" in lost else file, 0 if "line" in lost else line,
            False if "inlined" in lost else inlined, () if "mappings" in lost else place)


# ---- pprof ----

def read_pprof(path):
    data = list(fields(gzip.decompress(path.read_bytes())))
    strings = [v.decode() for n, v in data if n == 6]
    kinds = []
    for n, v in data:
        if n == 1:
            kind = dict(fields(v))
            kinds.append((strings[kind.get(1, 0)], strings[kind.get(2, 0)]))
    profile = Profile(kinds)
    functions = {f[1]: f for f in (dict(fields(v)) for n, v in data if n == 5)}
    extra, mappings, locations = set(), {}, {}
    for f in functions.values():
        if f.get(5) or strings[f.get(3, 0)] not in ("", strings[f.get(2, 0)]):
            extra.add((strings[f.get(2, 0)], strings[f.get(3, 0)], f.get(5, 0)))
    for n, v in data:
        if n == 3:
            m = dict(fields(v))
            mappings[m[1]] = (*(m.get(i, 0) for i in (2, 3, 4)), strings[m.get(5, 0)],
                              strings[m.get(6, 0)], *(m.get(i, 0) for i in (7, 8, 9, 10)))
        if n in (7, 8, 15):
            extra.add((n, strings[v]))
        if n != 4:
            continue
        lines, head = [], {}
        for m, w in fields(v):
            if m == 4:
                lines.append(dict(fields(w)))
            else:
                head[m] = w
        place = (head.get(2, 0), head.get(3, 0), head.get(5, 0))
        frames = []
        for i, line in enumerate(lines):
            f = functions[line[1]]
            if line.get(3):
                extra.add(("column", line[3]))
            frames.append((strings[f.get(2, 0)], strings[f.get(4, 0)], line.get(2, 0),
                           i + 1 < len(lines)))
        frames = frames or [(hex(head.get(3, 0)), "", 0, False)]
        if any(place):
            frames[-1] += (place,)
        locations[head[1]] = frames
    for frames in locations.values():
        if len(frames[-1]) == 5:
            mapping, *rest = frames[-1][4]
            frames[-1] = (*frames[-1][:4], (mappings.get(mapping, ()), *rest))
    for n, v in data:
        if n == 2:
            read_pprof_sample(profile, v, locations, strings)
    read_pprof_rest(profile, data, strings)
    profile.attributes["functions"] = tuple(sorted(extra, key=str))
    profile.attributes["mappings"] = tuple(mappings.values())
    return profile


def read_pprof_sample(profile, data, locations, strings):
    ids, values, labels = [], [], []
    for n, v in fields(data):
        if n == 3:
            label = dict(fields(v))
            labels.append((strings[label.get(1, 0)], strings[label.get(2, 0)], label.get(3, 0),
                           strings[label.get(4, 0)]))
        else:
            (ids if n == 1 else values).extend([v] if isinstance(v, int) else numbers(v))
    stack = [frame for i in ids for frame in locations[i]][::-1]
    profile.add(tuple(sorted(labels)), stack, values)


def read_pprof_rest(profile, data, strings):
    top = {n: v for n, v in data if n in (9, 10, 11, 12, 14)}
    comments, meta = [], dict.fromkeys(META, 0)
    meta.update(program="", mode="", time_ns=top.get(9, 0), duration_ns=top.get(10, 0))
    for n, v in data:
        for c in ([v] if isinstance(v, int) else numbers(v)) if n == 13 else []:
            key, equal, value = strings[c].partition("=")
            if equal and key.startswith("incstack.") and key[9:] in META:
                meta[key[9:]] = value if key[9:] in META[:2] else int(value)
            else:
                comments.append(strings[c])
    period = dict(fields(top.get(11, b"")))
    profile.attributes["comments"] = tuple(comments)
    profile.attributes["meta"] = tuple(meta[k] for k in META)
    period = (strings[period.get(1, 0)], strings[period.get(2, 0)], top.get(12, 0),
              strings[top.get(14, 0)])
    profile.attributes["period"] = period if any(period) else ()


# ---- the others ----

def read_folded(path):
    profile = Profile([("samples", "count")])
    for line in path.read_bytes().decode().split("\n")[:-1]:
        stack, _, weight = line.rpartition(" ")
        profile.add((), [(name, "", 0, False) for name in stack.split(";")], [int(weight)])
    return profile


def json_meta(profile, found):
    profile.attributes["meta"] = tuple(found[k] for k in META)


def read_speedscope(path):
    data = json.loads(path.read_text())
    frames = [(f["name"], f.get("file", ""), f.get("line", 0), f.get("inlineDepth", 0) > 0)
              for f in data["shared"]["frames"]]
    profile = Profile([(p["name"], p["kindUnit"]) for p in data["profiles"]])
    for k, p in enumerate(data["profiles"]):
        assert sum(p["weights"]) == p["endValue"]
        for stack, weight in zip(p["samples"], p["weights"], strict=True):
            profile.add((), [frames[i] for i in stack],
                        [weight if j == k else 0 for j in range(len(profile.kinds))])
    json_meta(profile, data["incstack"])
    return profile


def read_firefox(path):
    data = json.loads(path.read_text(), parse_float=Decimal)
    profile = Profile([(t["name"], t["kindUnit"]) for t in data["threads"]])
    for k, t in enumerate(data["threads"]):
        stacks = []
        for frame, prefix in zip(t["stackTable"]["frame"], t["stackTable"]["prefix"],
                                 strict=True):
            table, functions = t["frameTable"], t["funcTable"]
            function = table["func"][frame]
            file = functions["fileName"][function]
            here = (t["stringArray"][functions["name"][function]],
                    "" if file is None else t["stringArray"][file],
                    table["line"][frame] or 0, table["inlineDepth"][frame] > 0)
            stacks.append((stacks[prefix] if prefix is not None else ()) + (here,))
        is_time = t["kindUnit"] == "nanoseconds"
        assert (t["samples"]["weightType"] == "tracing-ms") == is_time
        for stack, weight in zip(t["samples"]["stack"], t["samples"]["weight"], strict=True):
            weight = int(weight * 1000000) if is_time else weight
            profile.add((), stacks[stack],
                        [weight if j == k else 0 for j in range(len(profile.kinds))])
    json_meta(profile, data["meta"]["incstack"])
    return profile


def read_otlp(path):
    return otlp_file.read(path, Profile, META)


READERS = dict(zip(FORMATS, (read_folded, read_pprof, read_speedscope, read_firefox, read_otlp)))

# ---- random profiles ----

PARTS = ["a", "B", "é", "日本", "😀", " ", ";", "\n", "\t", "\\", '"', "<", ">", "&", "\u2028",
         "\r", "operator<<(std::ostream&, int)", "0x10", "7", "f 12", "\x7f", "\x01"]
KINDS = [("samples", "count"), ("cpu", "nanoseconds"), ("alloc", "bytes"), ("w", "weird unit"),
         ("time", "seconds"), ("ms", "milliseconds"), ("samples", "count"), ("", "")]


def text(rng):
    return "".join(rng.choice(PARTS) for _ in range(rng.randint(1, 4)))


def random_pprof(rng, path):
    out = PprofWriter()
    often = rng.choice([0, 0, 0.2, 0.9])  # how often there is what need not be
    kinds = rng.sample(KINDS, rng.choice([1, 1, 2, 3]))
    for name, unit in kinds:
        out.body += field(1, field(1, out.string(name)) + field(2, out.string(unit)))
    mappings = random_mappings(rng, out) if rng.random() < often else [0]
    names = [text(rng) for _ in range(rng.randint(1, 8))] + ["n" * rng.choice([1, 5000])]
    locations = []
    for _ in range(rng.randint(1, 12)):
        lines = []
        for _ in range(rng.choice([1, 1, 2, 3]) if rng.random() < often else 1):
            name = rng.choice(names)
            file = rng.choice(["x.c", "/ä/y.rs"]) if rng.random() < often else ""
            system = rng.choice([name, "_Z1x"]) if rng.random() < often else ""
            start = rng.randint(0, 9) if rng.random() < often / 4 else 0
            line = rng.choice([1, 2, 77, 2 ** 31 - 1]) if rng.random() < often else 0
            if rng.random() < often / 20:
                line = 2 ** 31
            column = rng.randint(1, 9) if rng.random() < often / 9 else 0
            lines.append((out.function(name, file, system, start), line, column))
        address = rng.randint(1, 2 ** 48) if rng.random() < often else 0
        if rng.random() < often / 9:
            lines, address = [], rng.randint(1, 2 ** 48)
        locations.append(out.location(lines, address, rng.choice(mappings)))
    big = rng.choice([3, 1000, 2 ** 40, 2 ** 56])
    for _ in range(rng.choice([1, 3, 30])):
        ids = [rng.choice(locations) for _ in range(rng.randint(1, 12))]
        values = [rng.choice([0, 1, rng.randint(0, big)]) for _ in kinds]
        label = b""
        while rng.random() < often / 2:
            label += random_label(rng, out)
        out.body += field(2, field(1, b"".join(map(varint, ids))) +
                          field(2, b"".join(map(varint, values))) + label)
    random_rest(rng, out, often)
    path.write_bytes(out.bytes())


def random_mappings(rng, out):
    """Adds some and returns their identifiers, and 0 for none."""
    ids = rng.sample(range(1, 2 ** 40), rng.randint(1, 3))
    for i in ids:
        has = [field(n, rng.choice([0, 1])) for n in (7, 8, 9, 10)]
        out.body += field(3, field(1, i) + field(2, rng.randint(0, 2 ** 48)) +
                          field(3, 2 ** 48) + field(4, rng.choice([0, 4096])) +
                          field(5, out.string(rng.choice(["", "/bin/x", "/ä"]))) +
                          field(6, out.string(rng.choice(["", "a0b1"]))) + b"".join(has))
    return ids + [0]


def random_label(rng, out):
    key = field(1, out.string(rng.choice(["key", "é;", "a=b"])))
    if rng.random() < 0.5:
        return field(3, key + field(2, out.string(rng.choice(["1", "x\n", "b=c"]))))
    number = rng.choice([0, 1, 2 ** 64 - 1])
    return field(3, key + field(3, number) + field(4, out.string(rng.choice(["", "bytes"]))))


def random_rest(rng, out, often):
    if rng.random() < often:
        out.body += field(9, rng.randint(0, 2 ** 62)) + field(10, rng.randint(0, 2 ** 40))
    for _ in range(rng.randint(1, 3) if rng.random() < often else 0):
        comment = rng.choice([text(rng), "incstack.lost=3", "incstack.mode=exact",
                              "incstack.other=3", "incstack.program=a b"])
        out.body += field(13, out.string(comment))
    if rng.random() < often:
        out.body += field(11, field(1, out.string("cpu")) + field(2, out.string("ns")))
        out.body += field(12, rng.randint(0, 2 ** 40))
    if rng.random() < often:
        out.body += field(14, out.string("samples"))
    if rng.random() < often / 4:
        out.body += field(rng.choice([7, 8, 15]), out.string("drop.*"))


# ---- files of other programs ----

def foreign_frames(rng):
    often = rng.choice([0, 0.5])
    return [(text(rng), rng.choice(["x.c", "/ä/y.rs"]) if rng.random() < often else "",
             rng.choice([1, 77, 2 ** 31 - 1]) if rng.random() < often else 0,
             rng.random() < often / 2) for _ in range(rng.randint(1, 8))]


def foreign_weight(rng):
    """Quarters are whole as doubles; as milliseconds they are whole nanoseconds."""
    return rng.choice([1, rng.randint(0, 1000), Fraction(rng.randint(0, 999), 4)])


def as_number(weight):
    return float(weight) if isinstance(weight, Fraction) and weight.denominator > 1 \
        else int(weight)


def foreign_kinds(units):
    """The kinds that units become, in the order in which they are met, and their scales."""
    kinds, scales = [], []
    for unit in units:
        kind = {"none": ("samples", "count"), "samples": ("samples", "count"),
                "bytes": ("weight", "bytes")}.get(unit, ("time", "nanoseconds"))
        scale = {"milliseconds": 10 ** 6, "tracing-ms": 10 ** 6, "seconds": 10 ** 9}.get(unit, 1)
        if (kind, scale) not in zip(kinds, scales):
            kinds.append(kind)
            scales.append(scale)
    return kinds, scales


def add_foreign(profile, k, scale, stack, weight):
    profile.add((), stack, [weight * scale if j == k else 0 for j in range(len(profile.kinds))])


def index_of(unit, kinds, scales):
    (kind,), (scale,) = foreign_kinds([unit])
    return next(i for i, pair in enumerate(zip(kinds, scales)) if pair == (kind, scale)), scale


def random_speedscope(rng, path):
    frames = foreign_frames(rng)
    units = [rng.choice(["none", "bytes", "milliseconds", "nanoseconds"])
             for _ in range(rng.randint(1, 3))]
    kinds, scales = foreign_kinds(units)
    profile, profiles, names = Profile(kinds), [], []
    for unit in units:
        k, scale = index_of(unit, kinds, scales)
        name = rng.choice(["", "thread"])
        names += [name] if name else []
        out = {"name": name, "unit": unit, "startValue": 0}
        (random_events if rng.random() < 0.4 else random_samples)(
            rng, frames, out, lambda stack, weight: add_foreign(profile, k, scale, stack, weight))
        profiles.append(out)
    # Threads of one unit cannot be distinguished, named or not.
    profile.attributes["threads"] = tuple(names) or (("",) if len(kinds) < len(units) else ())
    table = [{k: v for k, v in zip(("name", "file", "line", "inlineDepth"),
                                   (f[0], f[1], f[2], int(f[3]))) if v} for f in frames]
    path.write_text(json.dumps({"shared": {"frames": table}, "profiles": profiles}))
    return profile


def random_samples(rng, frames, out, add):
    out.update(type="sampled", samples=[], weights=[])
    for _ in range(rng.randint(0, 20)):
        stack = [rng.randrange(len(frames)) for _ in range(rng.randint(1, 6))]
        weight = foreign_weight(rng)
        out["samples"].append(stack)
        out["weights"].append(as_number(weight))
        add([frames[i] for i in stack], weight)


def random_events(rng, frames, out, add):
    out.update(type="evented", events=[])
    at, stack = Fraction(0), []
    for i in range(rng.randint(0, 30)):
        step = foreign_weight(rng)
        if stack:
            add([frames[f] for f in stack], step)
        at += step
        if stack and rng.random() < 0.45:
            out["events"].append({"type": "C", "frame": stack.pop(), "at": as_number(at)})
        else:
            stack.append(rng.randrange(len(frames)))
            out["events"].append({"type": "O", "frame": stack[-1], "at": as_number(at)})
    step = foreign_weight(rng)
    if stack:  # open until the end
        add([frames[f] for f in stack], step)
    out["endValue"] = as_number(at + step)


def random_firefox(rng, path):
    units = [rng.choice(["samples", "bytes", "tracing-ms"]) for _ in range(rng.randint(1, 3))]
    kinds, scales = foreign_kinds(units)
    profile, threads, names = Profile(kinds), [], []
    for unit in units:
        k, scale = index_of(unit, kinds, scales)
        frames = foreign_frames(rng)
        strings = sorted({f[0] for f in frames} | {f[1] for f in frames if f[1]})
        rng.shuffle(strings)
        stacks, prefixes, ends = [], [], []
        for _ in range(rng.randint(1, 12)):
            prefix = rng.randrange(len(ends)) if ends and rng.random() < 0.8 else None
            frame = rng.randrange(len(frames))
            stacks.append(frame)
            prefixes.append(prefix)
            ends.append((ends[prefix] if prefix is not None else []) + [frames[frame]])
        samples, weights = [], []
        for _ in range(rng.randint(0, 20)):
            samples.append(rng.randrange(len(ends)))
            weights.append(foreign_weight(rng))
            add_foreign(profile, k, scale, ends[samples[-1]], weights[-1])
        name = rng.choice(["", "GeckoMain"])
        names += [name] if name else []
        order = list(range(len(frames)))
        threads.append({
            "name": name,
            "samples": {"stack": samples, "weight": [as_number(w) for w in weights],
                        "weightType": unit},
            "stackTable": {"frame": stacks, "prefix": prefixes},
            "frameTable": {"func": order, "line": [f[2] or None for f in frames],
                           "inlineDepth": [int(f[3]) for f in frames]},
            "funcTable": {"name": [strings.index(f[0]) for f in frames],
                          "fileName": [strings.index(f[1]) if f[1] else None for f in frames]},
            "stringArray": strings})
    profile.attributes["threads"] = tuple(names) or (("",) if len(kinds) < len(units) else ())
    path.write_text(json.dumps({"meta": {}, "threads": threads}))
    return profile


def random_source(rng, folder):
    """A file, and what it says."""
    kind = rng.random()
    if kind < 0.6:
        path = folder / "s.pb.gz"
        random_pprof(rng, path)
        return path, read_pprof(path)
    path = folder / ("s.speedscope.json" if kind < 0.8 else "s.firefox.json")
    return path, (random_speedscope if kind < 0.8 else random_firefox)(rng, path)
