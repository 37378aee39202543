# SPDX-License-Identifier: MIT
"""Continuations of pypy, whose stacks are copied, and ctypes callbacks."""
import ctypes
import sys

from _continuation import continulet

COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
libc = ctypes.CDLL("libc.so.6")


def deep(one, n):
    if n:
        return deep(one, n - 1) + 1
    one.switch()
    return 0


def body(one, n=0):
    total = 0
    for i in range(10):
        total += deep(one, i * 3)
    return total


total = 0
for _ in range(int(sys.argv[1])):
    running = [continulet(body) for _ in range(10)]
    while running:
        for one in list(running):
            result = one.switch()
            if not one.is_pending():
                running.remove(one)
                total += result
    numbers = (ctypes.c_int * 50)(*[(k * 7919) % 100 for k in range(50)])
    libc.qsort(numbers, 50, 4, COMPARE(lambda a, b: a[0] - b[0]))
    total += numbers[10]
print(total)
