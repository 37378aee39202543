/* SPDX-License-Identifier: MIT
 *
 * For the stub of a coverage build: opens its counters before the recorder starts. By itself
 * the profiling runtime does so afterwards, and what it allocates would be recorded.
 */
void __llvm_profile_initialize(void);

/* Where this is defined, the runtime leaves the start to us. */
extern int __llvm_profile_runtime;
int __llvm_profile_runtime;

__attribute__((constructor(101))) static void count(void)
{
	__llvm_profile_initialize();
}
