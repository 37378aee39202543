// SPDX-License-Identifier: MIT

/**
 * Native methods, also synchronized ones, that call Java again; and what a debugger does to
 * frames: popping them and forcing an early return, done by a helper thread.
 */
public class Natives extends Scenario {
    static {
        System.load(System.getProperty("natives"));
    }

    /** Calls {@link #back} through JNI. */
    static native int call(int depth);

    static native synchronized int callLocked(int depth);

    native int callVirtual(int depth);

    /** Calls {@link #thrower} and returns 1 if it threw, after clearing the exception. */
    static native int callCatching(int depth);

    static native int nothing(int x);

    static native synchronized int nothingLocked(int x);

    static int back(int depth) {
        tick();
        if (depth == 0) {
            return 0;
        }
        switch (depth % 3) {
        case 0:
            return 1 + call(depth - 1);
        case 1:
            return 1 + callLocked(depth - 1);
        default:
            return 1 + new Natives().callVirtual(depth - 1);
        }
    }

    static int thrower(int depth) {
        if (depth == 0) {
            throw new IllegalArgumentException();
        }
        tick();
        return thrower(depth - 1) + 1;
    }

    static int mixed(int depth) {
        return depth == 0 ? callCatching(10) : nothing(depth) + nothingLocked(depth) + mixed(depth - 1) - 2 * depth;
    }

    void round(long number) {
        int depth = (int) (number % 40);
        check(back(depth) == depth, "back");
        check(mixed(20) == 1, "mixed");
    }
}
