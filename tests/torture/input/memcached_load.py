# SPDX-License-Identifier: MIT
"""Sets and gets over the socket of a memcached, and says how many were right."""
import socket
import sys

connections = [socket.socket(socket.AF_UNIX) for _ in range(4)]
for connection in connections:
    connection.connect(sys.argv[1])
right = 0
for i in range(int(sys.argv[2]) * 300):
    connection = connections[i % 4]
    value = str(i).encode() * (i % 500 + 1)
    connection.sendall(b"set k%d 0 0 %d\r\n%s\r\n" % (i % 1000, len(value), value))
    right += connection.recv(100) == b"STORED\r\n"
    connection.sendall(b"get k%d\r\n" % (i % 1000))
    answer = b""
    while not answer.endswith(b"END\r\n"):
        answer += connection.recv(65536)
    right += value in answer
print(right)
