/* SPDX-License-Identifier: MIT
 *
 * Preloaded, it simulates hardware that protects return addresses: the kernel reports it.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SHSTK_STATUS = 0x5005, SHSTK_ENABLED = 1 };

static long call(long number, const long a[6])
{
	register long fourth __asm__("r10") = a[3];
	register long fifth __asm__("r8") = a[4];
	register long sixth __asm__("r9") = a[5];
	long result = number;

	__asm__ volatile("syscall"
			 : "+a"(result)
			 : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	return result;
}

long syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number != SYS_arch_prctl || arguments[0] != SHSTK_STATUS)
		return call(number, arguments);
	*(unsigned long *)arguments[1] = SHSTK_ENABLED;
	return 0;
}
