// SPDX-License-Identifier: MIT

/** Deep and shallow recursion over several kinds of calls, with loops that are replaced on-stack. */
public class Returns extends Scenario {
    interface Node {
        int go(Node[] all, int depth, int seed);
    }

    static class A implements Node {
        public int go(Node[] all, int depth, int seed) {
            tick();
            return depth == 0 ? seed : 1 + all[seed % all.length].go(all, depth - 1, seed + 1);
        }
    }

    static class B implements Node {
        public int go(Node[] all, int depth, int seed) {
            int sum = 0;
            for (int i = 0; i < 3; i++) {
                sum += i;
            }
            return depth == 0 ? seed : sum - 2 + all[(seed + 1) % all.length].go(all, depth - 1, seed + 1);
        }
    }

    static class C implements Node {
        public synchronized int go(Node[] all, int depth, int seed) {
            long wide = depth;
            double other = seed;
            int r = depth == 0 ? seed : all[(seed + 2) % all.length].go(all, depth - 1, seed + 1);
            return r + (wide >= 0 && other >= 0 ? 1 : 0) - (depth == 0 ? 1 : 0);
        }
    }

    final Node[] nodes = {new A(), new B(), new C()};

    public static int fibonacci(int n) {
        if (n < 2) {
            tick();
            return n;
        }
        return fibonacci(n - 1) + fibonacci(n - 2);
    }

    /** Long enough to be replaced by compiled code while it runs. */
    static int loop(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum += leaf(i);
        }
        return sum;
    }

    static int leaf(int i) {
        return (i & 1) == 0 ? 1 : 2;
    }

    void round(long number) {
        int depth = (int) (number * 37 % 400);
        int result = nodes[0].go(nodes, depth, 0);
        check(result == 2 * depth, "depth " + depth + " gave " + result);
        check(fibonacci(15) == 610, "fibonacci");
        check(loop(1000) == 1500, "loop");
    }
}
