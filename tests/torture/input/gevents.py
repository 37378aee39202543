# SPDX-License-Identifier: MIT
"""Green threads of gevent or eventlet that talk through queues from different depths."""
import sys

if sys.argv[1] == "gevent":
    import gevent
    from gevent.queue import Queue
    spawn, sleep = gevent.spawn, gevent.sleep
else:
    import eventlet
    from eventlet.queue import Queue
    spawn, sleep = eventlet.spawn, eventlet.sleep


def wait(thread):
    return thread.get() if hasattr(thread, "get") else thread.wait()


def deep(n, queue):
    if n:
        return [n] + deep(n - 1, queue)
    sleep(0)
    queue.put("x" * 10)
    return []


def work(n, queue):
    total = 0
    for i in range(10):
        total += len(deep((n * 7 + i) % 40, queue))
        total += len(queue.get())
        try:
            sleep(0)
            raise ValueError(n)
        except ValueError as error:
            total += len(str(error))
    return total


total = 0
for _ in range(int(sys.argv[2])):
    queue = Queue()
    threads = [spawn(work, n, queue) for n in range(30)]
    total += sum(wait(thread) for thread in threads)
print(total)
