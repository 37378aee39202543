/* SPDX-License-Identifier: GPL-2.0-only WITH Classpath-exception-2.0
 *
 * Names of methods for agents.
 */
#ifndef SHARE_INCSTACK_INCSTACKMETHODS_HPP
#define SHARE_INCSTACK_INCSTACKMETHODS_HPP

#include "memory/allStatic.hpp"
#include "jvmtifiles/jvmtiEnv.hpp"

#include <incstack/incstack_jvmti.h>

class IncStackMethods : AllStatic
{
      public:
	/* See DescribeMethod in incstack_jvmti.h. */
	static jvmtiError describe(JvmtiEnv *env, uint64_t key, jint bci,
				   struct incstack_jvmti_method *description);
};

#endif
