# SPDX-License-Identifier: MIT
"""Finds every single-point mutant of one C file: what is replaced, where, and by what.

It reads tokens, not a grammar. A mutated declaration does not compile, so it is not
a mutant.
"""
import dataclasses
import re

TOKEN = re.compile(r"""
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
  | (?P<name>[A-Za-z_]\w*)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
  | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)
""", re.X | re.S | re.M)

BOUND = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
EQUAL = {"==": "!=", "!=": "=="}
LOGIC = {"&&": "||", "||": "&&"}
SUM = {"+": "-", "-": "+", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
ORDER = re.compile(r"(__ATOMIC|memory_order)_(acquire|release|acq_rel|seq_cst)$", re.I)
ASSIGN = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "++", "--"}
JUMPS = {"return", "break", "continue", "goto"}
# A statement that begins with one of these is a declaration, or not a single statement.
OTHER = set("""if else for while do switch case default struct union enum const volatile static
    extern register inline typedef unsigned signed void char short int long float double
    bool _Bool _Atomic _Alignas _Thread_local _Static_assert static_assert __asm__ asm""".split())
PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int

    @property
    def end(self):
        return self.start + len(self.text)


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    operator: str
    start: int
    end: int
    text: str
    before: str
    after: str

    @property
    def change(self):
        return f"{self.before} => {self.after}"

    def apply(self, source):
        return source[:self.start] + self.text + source[self.end:]


def tokens_of(source):
    return [Token(found.lastgroup, found.group(), found.start())
            for found in TOKEN.finditer(source) if found.lastgroup != "skip"]


class Reader:
    """The tokens of a source, which bracket closes which, and the mutants found so far."""

    def __init__(self, path, source):
        self.path, self.source, self.found = path, source, []
        self.tokens = tokens_of(source)
        self.match, self.opened, self.depth = {}, {}, []
        open_at = []
        for at, token in enumerate(self.tokens):
            if open_at and token.text == PAIRS[self.tokens[open_at[-1]].text]:
                self.opened[at] = open_at[-1]
                self.match[open_at.pop()] = at
            # Inside of round or square brackets, counted from the innermost block.
            blocks = [i for i, k in enumerate(open_at) if self.tokens[k].text == "{"]
            self.depth.append(len(open_at) - 1 - blocks[-1] if blocks else len(open_at))
            if token.text in PAIRS and token.kind == "sign":
                open_at.append(at)

    def is_sign(self, at, *signs):
        return 0 <= at < len(self.tokens) and self.tokens[at].kind == "sign" and \
            self.tokens[at].text in signs

    def bodies(self):
        """First and last token of each function's body, and whether the function is void."""
        at, head = 0, 0
        while at < len(self.tokens):
            if self.is_sign(at, ";"):
                head = at + 1
            if self.is_sign(at, "{") and at in self.match:
                if self.is_sign(at - 1, ")"):
                    words = [t.text for t in self.tokens[head:at]]
                    result = words[:words.index("(")]
                    yield at, self.match[at], "void" in result and "*" not in result
                at = self.match[at]
                head = at + 1
            at += 1

    def add(self, operator, start, end, text):
        source = self.source
        first, last = source.rfind("\n", 0, start) + 1, source.find("\n", end)
        last = len(source) if last < 0 else last
        squeeze = lambda part: " ".join(part.split())
        self.found.append(Mutant(
            self.path, source.count("\n", 0, start) + 1, operator, start, end, text,
            squeeze(source[first:last]),
            squeeze(source[first:start] + text + source[end:last])))

    def swap(self, operator, at, text):
        self.add(operator, self.tokens[at].start, self.tokens[at].end, text)

    def operator(self, at):
        token, previous = self.tokens[at], self.tokens[at - 1]
        text = token.text
        if token.kind == "name":
            order = ORDER.match(text)
            if order:
                relaxed = "relaxed" if order[2].islower() else "RELAXED"
                self.swap("order", at, f"{order[1]}_{relaxed}")
            elif text in ("if", "while") and at + 1 in self.match:
                self.negate(at + 1)
        elif token.kind == "sign":
            for operator, table in (("bound", BOUND), ("equal", EQUAL), ("logic", LOGIC)):
                if text in table:
                    self.swap(operator, at, table[text])
            binary = previous.kind in ("name", "number") and previous.text != "return" or \
                previous.text in (")", "]")
            # A mutated counter of a loop would only time out.
            if text in SUM and (not self.depth[at] if text in ("++", "--") else binary):
                self.swap("sum", at, SUM[text])
            elif text == "?":
                self.arms(at)

    def negate(self, at):
        signs = [t.text for t in self.tokens[at:self.match[at]]]
        if any(s in EQUAL for s in signs) and not any(s in LOGIC or s == "?" for s in signs):
            return  # the operator `equal` does that
        start, end = self.tokens[at].end, self.tokens[self.match[at]].start
        self.add("negate", start, end, f"!({self.source[start:end]})")

    def arms(self, at):
        """Changes `c ? a : b`, which is how a minimum is written, to `c ? b : a`."""
        first, colon = at + 1, self.run(at + 1, ":")
        end = colon and self.run(colon + 1, ";", ",", ":", ")", "]", "}")
        if not end:
            return
        one = self.source[self.tokens[first].start:self.tokens[colon - 1].end]
        two = self.source[self.tokens[colon + 1].start:self.tokens[end - 1].end]
        self.add("arms", self.tokens[first].start, self.tokens[end - 1].end, f"{two} : {one}")

    def run(self, at, *ends):
        """Finds the next of these signs that is not inside a bracket or an inner `?`."""
        inner = 0
        while at < len(self.tokens):
            if self.is_sign(at, ":") and inner:
                inner -= 1
            elif self.is_sign(at, *ends):
                return at
            elif self.is_sign(at, ")", "]", "}", ";"):
                return None
            inner += self.is_sign(at, "?")
            at = self.match.get(at, at) + 1
        return None

    def starts_statement(self, at):
        if self.depth[at]:
            return False
        before = at - 1
        if self.is_sign(before, ";", "{", "}", ":") or self.tokens[before].text in ("else", "do"):
            return True
        return self.ends_head(before)

    def ends_head(self, at):
        """Whether this is the end of `if (...)` or of a similar statement."""
        return self.is_sign(at, ")") and \
            self.tokens[self.opened[at] - 1].text in ("if", "for", "while", "switch")

    def statement(self, at):
        token, following = self.tokens[at], self.tokens[at + 1]
        end = self.run(at, ";")
        if not end or end == at or token.text in OTHER or self.is_sign(at, "{"):
            return
        words = self.tokens[at:end]
        if token.text not in JUMPS:
            declares = token.kind == "name" and (
                following.kind == "name" or
                following.text == "*" and self.tokens[at + 2].text in ("*", "const") or
                following.text == "*" and self.tokens[at + 2].kind == "name" and
                self.is_sign(at + 3, "=", ";", ",", "["))
            acts = any(t.text in ASSIGN for t in words) or self.is_sign(end - 1, ")")
            if declares or not acts or token.kind in ("number", "text"):
                return
        self.add("drop", token.start, self.tokens[end].end, ";")

    def early(self, at, void):
        """Inserts a return as the first statement of a block, unless that is a jump already."""
        if self.tokens[at + 1].text in (*JUMPS, "case", "default") or self.is_sign(at + 1, "}"):
            return
        start = self.tokens[at].end
        self.add("return", start, start, " return;" if void else " return 0;")

    def read(self):
        for first, last, void in self.bodies():
            for at in range(first, last):
                if self.is_sign(at, "{") and (at == first or self.starts_statement(at)):
                    self.early(at, void)
                self.operator(at)
                if at > first and self.starts_statement(at):
                    self.statement(at)
        return self.found


def mutants_of(path, source):
    return Reader(path, source).read()
