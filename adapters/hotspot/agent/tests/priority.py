# SPDX-License-Identifier: MIT
"""The priority of the agent's sampler: real-time only if that was asked for and is allowed."""
import os

from harness import await_that, load_by_jcmd, require, running


def may_be_real_time():
    """Whether a child of ours, which is what the program is, too, may have such a priority."""
    child = os.fork()
    if not child:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def policy_of_sampler(process):
    for thread in map(int, os.listdir(f"/proc/{process}/task")):
        try:
            with open(f"/proc/{process}/task/{thread}/comm", encoding="utf-8") as file:
                if file.read() == "incstack sample\n":
                    return os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK
        except OSError:  # the thread has just ended
            pass
    return None


def sampled_with(java, options, policy, line):
    load_by_jcmd(java, f"interval=1ms,file={os.path.abspath('r.folded')}{options}")
    lines = [java.stderr.readline() for _ in range(1 + len(line))]
    require(all(any(part in s for s in lines) for part in ["sampling every", *line]), lines)
    await_that(lambda: policy_of_sampler(java.pid) == policy)  # soon after its session has started
    load_by_jcmd(java, "stop")
    require("samples written" in java.stderr.readline(), options)


def realtime():
    without = ["prlimit", "--rtprio=0", "--"]
    if os.getuid() == 0:
        without += ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"]
    with running(*without) as java:
        sampled_with(java, ",realtime", os.SCHED_OTHER, ["no real-time priority"])
    if may_be_real_time():
        with running() as java:
            sampled_with(java, "", os.SCHED_OTHER, [])
            sampled_with(java, ",realtime", os.SCHED_FIFO, [])
