# SPDX-License-Identifier: MIT
"""Threads that start, exchange work through queues, raise and end."""
import json
import queue
import sys
import threading

scale = int(sys.argv[1])


def work(inbox, outbox):
    for number in iter(inbox.get, None):
        try:
            if number % 10 == 0:
                raise ValueError(number)
            outbox.put(len(json.dumps({str(i): [i] * 3 for i in range(number % 50)})))
        except ValueError as error:
            outbox.put(len(str(error)))


total = 0
for _ in range(scale):
    inbox, outbox = queue.Queue(), queue.Queue()
    workers = [threading.Thread(target=work, args=(inbox, outbox)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for number in range(200):
        inbox.put(number)
    for _ in workers:
        inbox.put(None)
    for worker in workers:
        worker.join()
    total += sum(outbox.get() for _ in range(200))
print(total)
