// SPDX-License-Identifier: MIT

/**
 * Asynchronous exceptions in a thread that works. Apart from Debugged: a JVM without the library
 * crashes when a thread is stopped whose frame is popped.
 */
public class Stopped extends Scenario {
    @SuppressWarnings({"deprecation", "removal"})
    void round(long number) throws Throwable {
        Debugged.Victim v = new Debugged.Victim();
        v.start();
        for (int i = 0; i < 5; i++) {
            Thread.sleep(1);
            v.stop();
        }
        v.isOver = true;
        v.join(20000);
        check(!v.isAlive(), "the victim ends");
    }
}
