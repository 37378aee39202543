# SPDX-License-Identifier: MIT
"""Reads OTLP files, field by field, without the official schema."""
from pprof_message import fields, numbers


def value_of(data):
    """The text and the number of an AnyValue."""
    value = dict(fields(data))
    return value.get(1, b"").decode(), value.get(3, 0)


def indices(message, number):
    return [i for n, v in fields(message) if n == number for i in ([v] if isinstance(v, int) else numbers(v))]


def mapping_of(data, strings, attributes):
    m = dict(fields(data))
    build_id = ""
    for i in indices(data, 5):
        attribute = dict(fields(attributes[i]))
        assert strings[attribute[1]] == "process.executable.build_id.gnu"
        build_id = value_of(attribute[2])[0]
    return (*(m.get(i, 0) for i in (1, 2, 3)), strings[m.get(4, 0)], build_id, 0, 0, 0, 0)


def location_of(data, strings, functions, mappings):
    head = {n: v for n, v in fields(data) if n != 3}
    lines = [dict(fields(v)) for n, v in fields(data) if n == 3]
    frames = []
    for i, line in enumerate(lines):
        f = dict(fields(functions[line[1]]))
        frames.append((strings[f[1]], strings[f.get(3, 0)], line.get(2, 0), i + 1 < len(lines)))
    frames = frames or [(hex(head.get(2, 0)), "", 0, False)]
    if head.get(1, 0) or head.get(2, 0):
        frames[-1] += ((mappings[head.get(1, 0)] if head.get(1, 0) else (), head.get(2, 0), 0),)
    return frames


def label_of(data, strings):
    attribute = dict(fields(data))
    text, number = value_of(attribute.get(2, b""))
    return strings[attribute.get(1, 0)], text, number, strings[attribute.get(3, 0)]


def read(path, make, meta_names):
    """The profile, as `make` makes it of its kinds."""
    top = dict(fields(path.read_bytes()))
    tables = {n: [] for n in range(1, 8)}
    for n, v in fields(top[2]):
        tables[n].append(v)
    for n, table in tables.items():
        assert table and not table[0], f"table {n} does not begin with an empty element"
    strings = [v.decode() for v in tables[5]]
    scope = dict(fields(top[1]))[2]
    parts = [dict(fields(v)) for n, v in fields(scope) if n == 2]
    types = [dict(fields(part[1])) for part in parts]
    profile = make([(strings[t.get(1, 0)], strings[t.get(2, 0)]) for t in types])
    mappings = [mapping_of(v, strings, tables[6]) for v in tables[1]]
    locations = [location_of(v, strings, tables[3], mappings) for v in tables[2]]
    stacks = [[frame for i in indices(v, 1) for frame in locations[i]][::-1] for v in tables[7]]
    for k, message in enumerate(v for n, v in fields(scope) if n == 2):
        for sample in (v for n, v in fields(message) if n == 2):
            labels = tuple(sorted(label_of(tables[6][i], strings) for i in indices(sample, 2)))
            [value] = indices(sample, 4)
            profile.add(labels, stacks[dict(fields(sample)).get(1, 0)],
                        [value if j == k else 0 for j in range(len(types))])
    meta = {"program": "", "mode": "", "lost": 0, "truncated": 0, "pruned": 0,
            "time_ns": int.from_bytes(parts[0].get(3, b""), "little"), "duration_ns": parts[0].get(4, 0)}
    for pair in (dict(fields(v)) for n, v in fields(dict(fields(scope))[1]) if n == 3):
        key = pair[1].decode()
        meta[key] = value_of(pair[2])["program mode".count(key) == 0]
    period = dict(fields(parts[0].get(5, b"")))
    period = (strings[period.get(1, 0)], strings[period.get(2, 0)], parts[0].get(6, 0), "")
    profile.attributes["meta"] = tuple(meta[k] for k in meta_names)
    profile.attributes["period"] = period if any(period) else ()
    profile.attributes["mappings"] = tuple(mappings[1:])
    return profile
