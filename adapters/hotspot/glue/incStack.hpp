/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * What HotSpot calls, at the places where the tool `insert` puts the calls.
 */
#ifndef SHARE_INCSTACK_INCSTACK_HPP
#define SHARE_INCSTACK_INCSTACK_HPP

#include "jvmtifiles/jvmti.h"
#include "memory/allStatic.hpp"
#include "runtime/thread.hpp"
#include "utilities/growableArray.hpp"

class InstanceKlass;
class Method;

class IncStack : AllStatic
{
      public:
	/* The word of a poll that is armed for samples only. HotSpot arms it with the lowest bit
	 * alone. */
	static const uintptr_t Armed = 3;
	/* Whether a request asks the thread for a sample. */
	static bool pending(const JavaThread *thread)
	{
		return Atomic::load(&thread->incstack_asked) != 0;
	}
	/* The thread is at a poll, and its stack can be walked. */
	static void at_poll(JavaThread *thread)
	{
		if (pending(thread))
			sample_at_poll(thread);
	}
	/* Whether the poll is armed for samples only. Then the thread has nothing to learn of changed
	 * code, and needs no cross-modify fence (cpuid, which is slow in virtual machines). */
	static bool is_alone(JavaThread *thread);
	static bool clear(bool *is_alone)
	{
		*is_alone = false;
		return true;
	}
	/* The class is about to be unloaded. Called at a safepoint, or by a concurrent collector. */
	static void class_unloading(InstanceKlass *klass);
	/* The method, an old version, is about to be freed without its class. */
	static void method_freed(Method *method);
	static void register_functions(GrowableArray<jvmtiExtensionFunctionInfo *> *functions);

      private:
	static void sample_at_poll(JavaThread *thread);
};

#endif
