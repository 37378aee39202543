// SPDX-License-Identifier: MIT
import java.lang.reflect.Method;
import java.util.function.IntUnaryOperator;

/**
 * Every frame of a recursion meets a branch, or a class, that its compiled code does not know. The
 * classes are loaded anew for each series of rounds, so that it happens again and again.
 */
public class Deopt extends Scenario {
    /** Loaded by loaders of its own, many times. */
    public static class Recursion {
        static int trap;
        static Object other = "";

        public static int go(int depth) {
            if (depth == 0) {
                return 0;
            }
            tick();
            int r = go(depth - 1);
            if (trap != 0) {
                r += other.hashCode() == 0 ? 1 : 2;
            }
            return r + 1;
        }

        public static int run(int depth, int t) {
            trap = t;
            return go(depth);
        }

        public static int osr(int n, int t) {
            trap = t;
            int r = 0;
            for (int i = 0; i < n; i++) {
                r += go(2);
            }
            return r;
        }
    }

    Method run, osr;

    void load() throws Exception {
        Class<?> c = new Loader(Deopt.class.getName() + "$Recursion").loadClass(Deopt.class.getName() + "$Recursion");
        run = c.getMethod("run", int.class, int.class);
        osr = c.getMethod("osr", int.class, int.class);
    }

    static int apply(IntUnaryOperator f, int depth) {
        return depth == 0 ? f.applyAsInt(1) : apply(f, depth - 1) + 1;
    }

    void round(long number) throws Throwable {
        if (number % 400 == 0) {
            load();
        }
        boolean isLast = number % 400 == 399;
        int r = (int) run.invoke(null, 50, isLast ? 1 : 0);
        check(r == (isLast ? 100 : 50), "recursion " + r);
        if (number % 40 == 0) {
            check((int) osr.invoke(null, 3000, 0) == 6000, "osr");
        }
        int k = (int) (number % 5);
        IntUnaryOperator[] all = {x -> x, x -> x + 1, x -> x * 2 + k, x -> Returns.fibonacci(x), x -> k};
        int expected = k == 0 ? 1 : k == 1 ? 2 : k == 2 ? 4 : k == 3 ? 1 : 4;
        check(apply(all[k], 20) == 20 + expected, "apply");
    }
}
