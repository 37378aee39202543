// SPDX-License-Identifier: MIT

/** Exceptions through a hundred frames, caught in the middle, and rethrown by finally. */
public class Exceptions extends Scenario {
    static final class Up extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int depth;

        Up(int depth) {
            super(null, null, false, false);
            this.depth = depth;
        }
    }

    static int through(int depth) {
        tick();
        if (depth == 0) {
            throw new Up(100);
        }
        return through(depth - 1) + 1;
    }

    /** Every tenth frame catches and throws another one; every seventh has a finally. */
    static int middle(int depth) {
        if (depth == 0) {
            return Integer.parseInt("x");
        }
        if (depth % 10 == 0) {
            try {
                return middle(depth - 1);
            } catch (NumberFormatException e) {
                throw new Up(depth);
            } catch (Up e) {
                if (e.depth == 10) {
                    return Returns.fibonacci(5) + again(depth);
                }
                throw e;
            }
        }
        if (depth % 7 == 0) {
            try {
                return middle(depth - 1);
            } finally {
                Returns.fibonacci(3);
            }
        }
        return middle(depth - 1);
    }

    static int again(int depth) {
        return Returns.fibonacci(depth % 5);
    }

    static synchronized int locked(int depth) {
        tick();
        return depth == 0 ? through(3) : locked(depth - 1);
    }

    static int implicit(int[] a, Object o) {
        return a[3] + o.hashCode();
    }

    void round(long number) {
        int caught = 0;
        try {
            through(100);
        } catch (Up e) {
            tick();
            caught += e.depth;
        }
        try {
            locked(5);
        } catch (Up e) {
            caught++;
        }
        try {
            implicit(new int[(int) (number % 3)], this);
        } catch (ArrayIndexOutOfBoundsException e) {
            caught++;
        }
        try {
            implicit(new int[4], null);
        } catch (NullPointerException e) {
            caught++;
        }
        check(caught == 103, "caught " + caught);
        check(middle(25) == 5, "middle");
    }
}
