// SPDX-License-Identifier: MIT

/** Many short threads, and threads that wait. */
public class Threads extends Scenario {
    static final Object lock = new Object();

    static void work(int depth) {
        if (depth > 0) {
            work(depth - 1);
            return;
        }
        Returns.fibonacci(8);
        synchronized (lock) {
            try {
                lock.wait(0, 1000);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
        Thread.yield();
    }

    void round(long number) throws Throwable {
        Thread[] threads = new Thread[8];
        for (int i = 0; i < threads.length; i++) {
            int depth = i * 10;
            threads[i] = new Thread(() -> work(depth));
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
    }
}
