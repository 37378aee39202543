# SPDX-License-Identifier: MIT
"""Greenlets, whose stacks are copied away and back, at different depths."""
import sys

import greenlet

scale = int(sys.argv[1])


def deep(n, parent):
    if n:
        return [n] + deep(n - 1, parent)
    parent.switch(["leaf"])
    return [0]


def body(n):
    total = 0
    for i in range(20):
        total += len(deep((n + i) % 30, greenlet.getcurrent().parent))
    return total


total = 0
for _ in range(scale):
    running = [greenlet.greenlet(body) for _ in range(20)]
    results = [running[n].switch(n) for n in range(len(running))]
    while running:
        for one in list(running):
            result = one.switch()
            if one.dead:
                running.remove(one)
                total += result
print(total)
