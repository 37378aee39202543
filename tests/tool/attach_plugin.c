/* SPDX-License-Identifier: MIT
 *
 * A library that attach_target loads and unloads. It is built twice, with other names in it, so that
 * two libraries with different functions are at the same address, one after the other.
 */
void plugin_run(void (*function)(int));

static __attribute__((noinline)) void PLUGIN_NAME(void (*function)(int))
{
	function(1000);
	__asm__ volatile("" ::: "memory");
}

void plugin_run(void (*function)(int))
{
	PLUGIN_NAME(function);
	__asm__ volatile("" ::: "memory");
}
