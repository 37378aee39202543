# SPDX-License-Identifier: MIT
"""The messages of pprof files, field by field, and a writer of random ones."""
import gzip


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """A number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value) if value else b""
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(data):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        elif tag & 7 == 1:
            at += 8
            yield tag >> 3, data[at - 8:at]
        else:
            assert tag & 7 == 2, tag
            size = number()
            at += size
            yield tag >> 3, data[at - size:at]


def numbers(data):
    """Of a packed field."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


class PprofWriter:
    def __init__(self):
        self.strings = {"": 0}
        self.functions = {}
        self.locations = {}
        self.body = b""

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings))

    def function(self, name, file, system, start):
        key = (name, file, system, start)
        if key not in self.functions:
            self.functions[key] = len(self.functions) + 1
            self.body += field(5, field(1, self.functions[key]) + field(2, self.string(name)) +
                               field(3, self.string(system)) + field(4, self.string(file)) +
                               field(5, start))
        return self.functions[key]

    def location(self, lines, address, mapping):
        """lines: (function, line, column), innermost first."""
        key = (tuple(lines), address, mapping)
        if key not in self.locations:
            self.locations[key] = len(self.locations) + 1
            body = field(1, self.locations[key]) + field(2, mapping) + field(3, address) + \
                field(5, int(address % 7 == 1))
            for function, line, column in lines:
                body += field(4, field(1, function) + field(2, line) + field(3, column))
            self.body += field(4, body)
        return self.locations[key]

    def bytes(self):
        return gzip.compress(self.body + b"".join(
            field(6, text.encode()) for text in self.strings), 1)
