/* SPDX-License-Identifier: MIT
 *
 * Threads whose first allocation comes from pthread_getattr_np, which holds the lock of the
 * thread, as in a Java virtual machine.
 *
 * incstack heap returns: 0
 */
#include <pthread.h>

static void *ask(void *argument)
{
	pthread_attr_t attributes;

	if (pthread_getattr_np(pthread_self(), &attributes) != 0)
		return argument;
	pthread_attr_destroy(&attributes);
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		void *failed;

		if (pthread_create(&thread, NULL, ask, "failed") != 0 ||
		    pthread_join(thread, &failed) != 0 || failed)
			return 1;
	}
	return 0;
}
