/* SPDX-License-Identifier: MIT
 *
 * The lock of a recording. It is held for a moment in each event. Python's own lock does not suffice: raw memory
 * is allocated without it.
 */
#ifndef LOCK_H
#define LOCK_H

void lock_take(void);
void lock_give(void);
void lock_watch_forks(void);

#endif
