/* SPDX-License-Identifier: MIT
 *
 * The open requests for samples, and their tickets (Gnedt 2014, section 4.1; ICPE'15, section
 * 3.1). A request has a place among 64, and a thread that it asks has the bit of that place in
 * its word. Drawing is one atomic operation and never waits.
 */
#ifndef INCSTACK_HOTSPOT_TICKETS_H
#define INCSTACK_HOTSPOT_TICKETS_H

#include <stddef.h>
#include <stdint.h>

#include <incstack/version.h>

INCSTACK_BEGIN_C

enum { INCSTACK__REQUESTS = 64 };

/* What the samples of a request need to know. Constant while the request is open. */
struct incstack__request {
	uint64_t id;
	uint64_t due;      /* CLOCK_MONOTONIC, ns */
	uint64_t deadline; /* likewise; 0: the next request closes it */
	uint32_t flags;
	uint32_t reserved;
};

struct incstack__tickets {
	struct incstack__place {
		uint64_t word; /* tickets left (low 32 bits), draws in progress (the rest) */
		uint64_t taken;
		struct incstack__request request;
	} places[INCSTACK__REQUESTS];
	uint64_t open;        /* bits: places in use */
	uint64_t asked;       /* bits that may be set in the words of threads */
	uint64_t lost_closed; /* tickets that nobody had drawn when their request was closed */
	uint32_t next;        /* where the search for a free place begins */
};

/* Requester only: the caller serializes calls of find, open and close. */

/* Returns a place for a request, or -1 if all are in use. Some bits of *left may still be set in the words
 * of threads that did not answer an earlier request; the caller clears them before it opens this one. The
 * places take turns, so that *left is 0 in all but one of 64 calls, and few calls look at all threads. */
int incstack__tickets_find(struct incstack__tickets *tickets, uint64_t *left);

/* Opens a request for n samples at a place that was found. */
void incstack__tickets_open(struct incstack__tickets *tickets, uint32_t place,
			    const struct incstack__request *request, uint32_t n);

/* Draws a ticket. Returns the request, or null if there is no ticket. After a draw the
 * request stays valid until incstack__tickets_taken. Thread: any. */
const struct incstack__request *incstack__tickets_draw(struct incstack__tickets *tickets,
						       uint32_t place);
void incstack__tickets_taken(struct incstack__tickets *tickets, uint32_t place);

/* Returns how many samples of the open request are still to be taken. */
uint32_t incstack__tickets_left(const struct incstack__tickets *tickets, uint32_t place);

/* Closes the request: no ticket is drawn from now on. Does not wait for samples in progress, but
 * the place is not used again before they have ended. */
void incstack__tickets_close(struct incstack__tickets *tickets, uint32_t place);

/* Closes the requests without deadline and those whose deadline has passed. */
void incstack__tickets_close_due(struct incstack__tickets *tickets, uint64_t now);

INCSTACK_END_C

#endif
