# SPDX-License-Identifier: MIT
"""Reads the boxes of a page of the flame graph."""
import base64
import json
from collections import Counter

START = '<script type="application/json" id="data">\n'


class Numbers:
    """A stream of numbers: seven bits in each byte, the lowest first."""

    def __init__(self, text):
        self.bytes, self.at = base64.b64decode(text, validate=True), 0

    def next(self):
        value, shift = 0, 0
        while True:
            byte = self.bytes[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def more(self):
        return self.at < len(self.bytes)


class Page:
    """The boxes as lists: a box is [parent, function or None, own weights]; the root is box 0."""

    def __init__(self, path):
        text = path.read_text()
        self.data = json.loads(text[text.index(START) + len(START):text.index("</script><script>")])
        self.kinds = len(self.data["kinds"])
        self.functions = self.data["functions"]
        self.frames = [None]
        numbers = Numbers(self.data["frames"])
        while numbers.more():
            self.frames.append([numbers.next() for _ in range(5)])
        self.boxes, self.left_out = [], 0
        self.read_boxes(Numbers(self.data["boxes"]))
        assert len(self.boxes) == self.data["count"]

    def read_boxes(self, numbers):
        self.boxes.append([None, None, self.read_weights(numbers)])
        last = 0
        while numbers.more():
            for _ in range(numbers.next() >> 1):
                last = self.boxes[last][0]
            frame = numbers.next()
            if not frame:
                self.left_out += numbers.next()
            function = self.functions[self.frames[frame][0]] if frame else None
            self.boxes.append([last, function, self.read_weights(numbers)])
            last = len(self.boxes) - 1

    def read_weights(self, numbers):
        mask = numbers.next()
        return [numbers.next() if mask >> k & 1 else 0 for k in range(self.kinds)]

    def sums(self, k=0):
        """(own, total) of each function. A function within itself counts once."""
        totals = [box[2][k] for box in self.boxes]
        for box in range(len(self.boxes) - 1, 0, -1):
            totals[self.boxes[box][0]] += totals[box]
        found, seen, path, above = {}, set(), [], Counter()
        for (parent, function, own), total in list(zip(self.boxes, totals))[1:]:
            assert (parent, function) not in seen, "a context has two boxes"
            seen.add((parent, function))
            while path and path[-1][0] != parent:
                above[path.pop()[1]] -= 1
            before = found.get(function, (0, 0))
            found[function] = (before[0] + own[k], before[1] + (0 if above[function] else total))
            path.append((len(seen), function))
            above[function] += 1
        found.pop(None, None)
        for function, *numbers in self.data["leftOut"]:
            before = found.get(self.functions[function], (0, 0))
            found[self.functions[function]] = (before[0] + numbers[k],
                                               before[1] + numbers[self.kinds + k])
        return found
