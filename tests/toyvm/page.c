/* SPDX-License-Identifier: MIT
 *
 * The polling page. Compiled code polls by reading a page of its thread; a thread that requests
 * something makes the page unreadable. The fault handler recognizes a poll by the page and
 * continues in a stub, so the slow path runs outside of the handler, as at any other poll. A
 * fault only means that the poll word must be read; it may have no request.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "vm.h"

enum { PAGE = 4096 };

static uintptr_t first, last; /* of the pages of the VM that runs */
static struct sigaction before;

static void on_fault(int signal, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)info->si_addr, pc = (uintptr_t)r[REG_RIP];
	if (at < first || at >= last || !code_find(pc)) {
		sigaction(
			signal, &before,
			NULL); /* the instruction faults again, with the handler that was there before */
		return;
	}
	struct fiber *f = (struct fiber *)r[REG_R15];
	f->pc = pc;
	r[REG_RIP] = (greg_t)stubs.page;
}

void pages_open(struct vm *vm)
{
	size_t bytes = PAGE * (size_t)vm->schedule.threads;
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	char *pages = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || sigaction(SIGSEGV, &action, &before))
		abort();
	first = (uintptr_t)pages;
	last = first + bytes;
	for (int i = 0; i < vm->schedule.threads; i++)
		vm->threads[i].page = pages + PAGE * (size_t)i;
}

void pages_close(void)
{
	sigaction(SIGSEGV, &before, NULL);
	munmap((void *)first, last - first);
}

static void protect(const struct thread *t, int how)
{
	if (mprotect(t->page, PAGE, how))
		abort();
}

static void arm(struct vm *vm, int stops)
{
	if (!vm->schedule.page)
		return;
	pthread_mutex_lock(&vm->page_lock);
	vm->stopping += stops;
	for (int i = 0; i < vm->schedule.threads; i++)
		protect(&vm->threads[i], PROT_NONE);
	pthread_mutex_unlock(&vm->page_lock);
}

/* Makes the pages of threads with a request unreadable. Called after the poll words were set. */
void pages_arm(struct vm *vm)
{
	arm(vm, 0);
}

/* Called around a stop of all threads, which sets the words and waits. Until it is over, a thread
 * that polled before its word was set does not make its page readable. */
void pages_stop(struct vm *vm)
{
	arm(vm, 1);
}

void pages_stopped(struct vm *vm)
{
	if (!vm->schedule.page)
		return;
	pthread_mutex_lock(&vm->page_lock);
	vm->stopping--;
	pthread_mutex_unlock(&vm->page_lock);
}

/* Makes the page readable before the thread reads its word. So whoever sets the word later makes
 * the page unreadable again. */
void page_disarm(struct thread *t)
{
	COUNT(pages);
	pthread_mutex_lock(&t->vm->page_lock);
	if (!t->vm->stopping)
		protect(t, PROT_READ);
	pthread_mutex_unlock(&t->vm->page_lock);
}
