# SPDX-License-Identifier: MIT
"""Parsing, regular expressions, recursion, generators, callbacks through ctypes."""
import ast
import ctypes
import inspect
import json
import json.decoder
import re
import sys

scale = int(sys.argv[1])
source = inspect.getsource(json.decoder)


def deep(n):
    return [n, deep(n - 1)] if n else []


def walk(n):
    if n:
        yield n
        yield from walk(n - 1)


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc = ctypes.CDLL(None)
total = 0
for i in range(scale):
    total += len(ast.dump(ast.parse(source)))
    total += len(json.loads(json.dumps([{str(k): [k, [i]]} for k in range(500)])))
    total += len(re.sub("(a|b)+", lambda m: m.group(0).upper(), source))
    total += len(str(deep(200))) + sum(walk(100))
    numbers = (ctypes.c_int * 200)(*[(k * 7919) % 1000 for k in range(200)])
    libc.qsort(numbers, 200, 4, COMPARE(lambda a, b: a[0] - b[0]))
    total += numbers[100]
    try:
        json.loads("[" * 100)
    except ValueError as error:
        total += len(str(error))
print(total)
