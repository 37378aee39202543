# SPDX-License-Identifier: MIT
"""Prints C functions that keep an optimizer busy."""
import sys

for i in range(1, int(sys.argv[1]) * 20 + 1):
    print(f"""int f{i}(int a, int *b) {{ int s = 0; for (int i = 0; i < a; i++) {{
    if (b[i] % ({i} + 2)) s += b[i] * {i}; else s ^= b[i] / (a + {i});
    if (s > {i} && i) b[i - 1] += s; }} return s; }}""")
