# SPDX-License-Identifier: MIT
"""asyncio: tasks, a server and its clients over a socket pair, executors, cancelled tasks."""
import asyncio
import sys

scale = int(sys.argv[1])


async def answer(reader, writer):
    while line := await reader.readline():
        writer.write(line.upper())
        await writer.drain()
    writer.close()


async def ask(path, number):
    reader, writer = await asyncio.open_unix_connection(path)
    total = 0
    for i in range(20):
        writer.write(b"x%d\n" % (i * number))
        total += len(await reader.readline())
    writer.close()
    return total


async def main():
    server = await asyncio.start_unix_server(answer, "socket")
    total = 0
    for _ in range(scale):
        total += sum(await asyncio.gather(*(ask("socket", n) for n in range(10))))
        task = asyncio.create_task(asyncio.sleep(100))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            total += 1
        loop = asyncio.get_running_loop()
        total += await loop.run_in_executor(None, lambda: sum(range(1000)))
    server.close()
    print(total)


asyncio.run(main())
