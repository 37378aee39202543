// SPDX-License-Identifier: MIT

/** PopFrame and ForceEarlyReturn on a thread that works. */
public class Debugged extends Scenario {
    static {
        System.load(System.getProperty("natives"));
    }

    /** Suspends the thread, pops its top frame if it is a Java method, resumes it. */
    static native boolean popFrame(Thread thread);

    /** Suspends the thread, makes its top frame return 7 if it is `victim`, resumes it. */
    static native boolean forceReturn(Thread thread);

    static final class Victim extends Thread {
        volatile boolean isOver;
        volatile long work;
        volatile int stops;

        static int victim(Victim v, int n) {
            int r = 0;
            for (int i = 0; i < n; i++) {
                r += Returns.leaf(i);
                v.work++;
            }
            return r;
        }

        static int deep(Victim v, int depth) {
            tick();
            return depth == 0 ? victim(v, 2000) : deep(v, depth - 1) + 1;
        }

        @Override
        public void run() {
            while (!isOver) {
                try {
                    deep(this, 30);
                } catch (ThreadDeath e) {
                    stops++; // see Stopped
                }
            }
        }
    }

    long done;

    void round(long number) throws Throwable {
        Victim v = new Victim();
        v.start();
        for (int i = 0; i < 20; i++) {
            Thread.sleep(1);
            done += (i % 2 == 0 ? forceReturn(v) : popFrame(v)) ? 1 : 0;
        }
        v.isOver = true;
        v.join(20000);
        check(!v.isAlive(), "the victim ends");
        check(number < 20 || done > 0, "no frame was popped");
    }
}
