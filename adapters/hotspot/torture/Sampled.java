// SPDX-License-Identifier: MIT

/** Samples of the calling thread; the agent hammer implements it. */
final class Sampled {
    static {
        System.load(System.getProperty("sampled"));
    }

    private Sampled() {
    }

    static native void now();
}
