// SPDX-License-Identifier: MIT
import java.util.concurrent.atomic.AtomicLong;

/**
 * Runs scenarios, each in several threads, until the time is over:
 * {@code java Scenario SECONDS THREADS NAME...}. Each round checks its own result.
 */
public abstract class Scenario {
    /** One round, some milliseconds at most. A wrong result throws. */
    abstract void round(long number) throws Throwable;

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException("wrong result: " + what);
        }
    }

    static final boolean IS_SAMPLED = System.getProperty("sampled") != null;
    static int ticks;

    /** Now and then the thread samples itself here, if the property says so. */
    public static void tick() {
        if (IS_SAMPLED && (++ticks & 31) == 0) {
            Sampled.now();
        }
    }

    /** Rounds without which nothing of interest has happened, however slow the machine is. */
    long atLeast() {
        return 0;
    }

    static final AtomicLong rounds = new AtomicLong();
    static volatile Throwable failure;

    static void repeat(Scenario scenario, long end) {
        try {
            for (long i = 0; (i <= scenario.atLeast() || System.nanoTime() < end) && failure == null; i++) {
                scenario.round(i);
                rounds.incrementAndGet();
            }
        } catch (Throwable t) {
            failure = t;
        }
    }

    static Scenario make(String name) throws Exception {
        return (Scenario) Class.forName(name).getDeclaredConstructor().newInstance();
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        int count = Integer.parseInt(args[1]);
        if (IS_SAMPLED) {
            Sampled.now(); // its library is loaded before a thread can be stopped in that
        }
        Thread[] threads = new Thread[count];
        for (int i = 0; i < count; i++) {
            Scenario scenario = make(args[2 + i % (args.length - 2)]);
            threads[i] = new Thread(() -> repeat(scenario, end), "scenario-" + i);
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
        if (failure != null) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.out.println("rounds=" + rounds);
    }
}
