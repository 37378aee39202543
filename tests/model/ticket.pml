/* SPDX-License-Identifier: MIT
 *
 * The ticket protocol of src/safepoint/request.c, start.c, poll.c and word.c, one
 * request. Each label or comment in capitals is the INCSTACK__STEP_ of that name;
 * one atomic block is one atomic operation of the C code on one word.
 *
 * Safety (assertions): at most N operations, each with a ticket, never two for one thread,
 * one end and only after the last operation, and a thread that the requester samples waits
 * meanwhile.
 * Liveness: every request ends (ltl ends), nobody is left at a gate (end states).
 *
 * -DMUTE: the last thread never polls, begins to wait or exits. -DNO_EXIT: no thread
 * exits. -DNO_WAIT: none begins to wait. -DALL_RUN: none waits at first. -DNO_EXPIRY,
 * -DMUST_EXPIRE: the deadline never or always passes; else maybe.
 * -DRIVAL: another requester, or a full safepoint, may have the threads that wait, and
 * later lets them go. -DNO_SHORT: the request must end with N samples.
 * T threads, N samples wanted. -DFAULT_x: a seeded fault, which run.sh requires to be found.
 */
#ifndef T
#define T 2
#endif
#ifndef N
#define N 2
#endif

/* The word of a thread. */
bool claim[T], waiting[T], held[T], gone[T];
/* Only with RIVAL: who has HELD of a thread, and STOP, which the rival also takes back. */
bool rivals[T], stop[T];
/* The request. The tickets of running (RUN) and waiting (WAIT) threads. */
#define RUN 0
#define WAIT 1
byte drawn[2], limit[2];
bool shut[2];
byte refs, taken, ends_seen;
bool over;
/* The threads below are in the request's list: it grows while bits are set. */
byte listed;
/* What the assertions count. */
byte by_thread[T], operations;
#ifdef RIVAL
#define FREE(t) (waiting[t] && !held[t] && !stop[t])
#else
#define FREE(t) (waiting[t] && !held[t])
#endif

inline drop() {
	/* DROP */
	atomic { refs--; last = (refs == 0) };
	if
	:: last ->
		/* FINISH */
		atomic { ends_seen++; assert(ends_seen == 1); assert(taken == operations); over = true; last = false;
#ifdef NO_SHORT
			assert(taken == N)
#endif
		}
	:: else
	fi
}

inline disarm() {
	most = listed;
	d = 0;
	do
	:: d < most ->
		/* DISARM */
		if
		:: claim[d] -> /* a look; the clearing looks again */
			atomic { seen = claim[d]; claim[d] = false };
			if
			:: seen -> drop()
			:: else
			fi;
			seen = false
		:: else
		fi;
		d++
	:: else -> d = 0; most = 0; break
	od
}

inline draw(kind) {
	/* DRAW */
#ifdef FAULT_DRAW /* the count is read and written in two steps */
	atomic { won = (!shut[kind] && drawn[kind] < limit[kind]); number = drawn[kind] };
	if
	:: won -> drawn[kind] = number + 1
	:: else
	fi
#else
	atomic {
		won = (!shut[kind] && drawn[kind] < limit[kind]);
		number = drawn[kind];
		if
		:: won -> drawn[kind]++
		:: else
		fi
	}
#endif
}

inline perform(whom, kind) {
	/* BEGIN, OPERATION */
	atomic {
		operations++;
		assert(operations <= N);
		assert(operations <= drawn[RUN] + drawn[WAIT]);
		by_thread[whom]++;
		assert(by_thread[whom] == 1);
		assert(!gone[whom]);
		assert(kind == RUN || waiting[whom])
	};
	atomic { assert(kind == RUN || waiting[whom]); taken++ }
}

inline meet(whom) {
	draw(RUN);
	if
	:: won ->
		perform(whom, RUN);
#ifndef FAULT_DISARM /* the last ticket leaves the others armed */
		if
		:: number + 1 == limit[RUN] -> disarm()
		:: else
		fi
#endif
	:: else
	fi;
	atomic { won = false; number = 0; seen = false }; /* dead: fewer states */
	drop()
}

inline serve() {
	if
	:: claim[me] ->
		/* CLAIM */
#ifdef FAULT_CLAIM /* clears the bit without looking whether it was still there */
		claim[me] = false;
		seen = true;
#else
		atomic { seen = claim[me]; claim[me] = false };
#endif
		if
		:: seen -> meet(me)
		:: else
		fi
	:: else
	fi
}

/* Draws for the claims that were left on a thread, then lets it go; not for those on a
 * stopped one, which resume holds. */
inline unhold(whom) {
	do
	:: true ->
		if
		:: claim[whom] && !stop[whom] ->
			/* CLAIM */
			atomic { seen = claim[whom]; claim[whom] = false };
			if
			:: seen -> meet(whom)
			:: else
			fi
		:: else ->
			/* UNHOLD */
			atomic {
#ifdef FAULT_UNHOLD_CLAIM /* lets go without a look at the claims */
				let_go = true;
#else
				let_go = !claim[whom] || stop[whom];
#endif
				if
				:: let_go -> held[whom] = false
				:: else
				fi
			};
			if
			:: let_go -> let_go = false; break
			:: else
			fi
		fi
	od
}

proctype thread(byte me) {
	bool seen, last, won, entered;
	byte d, most, number;
	if
	:: waiting[me] -> goto in_wait
	:: else
	fi;
poll:
	serve();
	if
	:: over -> goto done
	:: true -> goto poll
#ifndef NO_WAIT
	:: true -> goto enter
#endif
#ifndef NO_EXIT
	:: true -> goto exit
#endif
	fi;
enter:
	serve();
	/* ENTER */
	atomic {
#ifdef FAULT_ENTER /* begins to wait with a claim on it */
		entered = true;
#else
		entered = !claim[me];
#endif
		waiting[me] = entered
	};
	if
	:: entered -> entered = false
	:: else -> goto enter
	fi;
in_wait:
	if
	:: true /* comes back soon */
	:: true -> over /* or stays as long as the request lasts */
	fi;
	/* LEAVE */
#ifdef FAULT_LEAVE /* passes the gate although it is held */
	waiting[me] = false;
#else
	atomic { !held[me] && !stop[me] -> waiting[me] = false };
#endif
	goto poll;
exit:
	/* GONE */
	atomic { seen = claim[me]; claim[me] = false; gone[me] = true };
#ifndef FAULT_EXIT /* keeps its claim */
	if
	:: seen -> drop()
	:: else
	fi;
#endif
done:
	skip
}

/* A thread that waits is claimed if `also_waiting`, and held if nobody has it. */
inline arm(also_waiting) {
	/* ARM */
	listed = (listed > i + 1 -> listed : i + 1);
#ifndef FAULT_ARM_REF /* the reference comes after the bit */
	refs++;
#endif
	atomic {
		armed = true;
#ifndef FAULT_ARM_WAITING /* arms a thread that will not come */
		armed = armed && (!waiting[i] || also_waiting);
#endif
#ifndef FAULT_ARM_GONE /* arms who has gone */
		armed = armed && !gone[i];
#endif
		claim[i] = armed;
#ifdef FAULT_ARM_HELD /* leaves a claim on a thread that nobody has */
#else
		if
		:: armed && also_waiting && FREE(i) -> held[i] = true; mine[i] = true
		:: else
		fi
#endif
	};
#ifdef FAULT_ARM_REF
	if
	:: armed -> refs++
	:: else
	fi
#else
	if
	:: !armed -> refs--
	:: else
	fi
#endif
	if
	:: armed -> claimed[i] = true; claims++
	:: else
	fi
}

proctype requester() {
	bool seen, last, won, armed, let_go, mine[T], claimed[T];
	byte i, d, most, number, claims, chosen = T;
	/* HOLD: one waiting thread, if there is one that does not escape and that nobody
	 * else has. */
	i = 0;
	do
	:: i < T && chosen == T ->
		atomic {
			if
			:: FREE(i) -> held[i] = true; chosen = i; claimed[i] = true
			:: else
			fi
		};
		i++
	:: else -> break
	od;
	atomic {
		limit[WAIT] = (chosen < T -> 1 : 0);
		limit[RUN] = N - limit[WAIT];
	};
	i = 0;
	do
	:: i < T && limit[RUN] > 0 && !shut[RUN] && drawn[RUN] < limit[RUN] ->
		if
		:: i != chosen -> arm(false)
		:: else
		fi;
		i++
	:: else -> break
	od;
#ifndef FAULT_SHORT /* who waits now, and is had by others, is passed over */
	i = 0;
	do
	:: i < T && claims < limit[RUN] && !shut[RUN] && drawn[RUN] < limit[RUN] ->
		if
		:: !claimed[i] -> arm(true)
		:: else
		fi;
		i++
	:: else -> break
	od;
#endif
#ifndef FAULT_REARM /* does not look whether bits were set in vain */
	/* REARM */
	if
	:: shut[RUN] || drawn[RUN] >= limit[RUN] -> disarm()
	:: else
	fi;
#endif
	if
	:: chosen < T ->
#ifdef FAULT_HELD_DRAW /* the requester's own operations draw no ticket */
		won = true;
#else
		draw(WAIT);
#endif
		if
		:: won -> perform(chosen, WAIT)
		:: else
		fi;
#ifndef FAULT_UNHOLD /* the waiting thread is never let go */
		unhold(chosen)
#endif
	:: else
	fi;
	i = 0;
	do
	:: i < T ->
		if
		:: mine[i] -> mine[i] = false; unhold(i)
		:: else
		fi;
		i++
	:: else -> break
	od;
#ifndef FAULT_STARTER /* the starter holds no reference */
	drop()
#endif
}

#ifdef RIVAL
/* Another requester that has thread 0, if it waits; then a full safepoint that has it. */
proctype rival() {
	bool seen, last, won, let_go, mine;
	byte d, most, number;
	atomic {
		if
		:: FREE(0) -> held[0] = true; mine = true
		:: else
		fi
	};
	if
	:: mine -> mine = false; unhold(0)
	:: else
	fi;
	/* STOP; a running thread would first begin to wait, which this thread does not wait for. */
	stop[0] = true;
	if
	:: true
	:: true -> (waiting[0] && !held[0]) || over || gone[0]
	fi;
	/* RESUME */
	atomic {
		stop[0] = false;
#ifndef FAULT_RESUME_CLAIM /* leaves the claims to nobody */
		if
		:: waiting[0] && !held[0] && claim[0] -> held[0] = true; mine = true
		:: else
		fi
#endif
	};
	if
	:: mine -> mine = false; unhold(0)
	:: else
	fi
}
#endif

/* Who sees that the deadline has passed. */
proctype expirer() {
	bool seen, last, taken_ref;
	byte d, most;
	if
#ifndef MUST_EXPIRE
	:: true -> goto done
#endif
#ifndef NO_EXPIRY
	:: true
#endif
	fi;
#ifdef FAULT_EXPIRE_REF /* takes a reference of a request that may be over */
	refs++;
#else
	atomic {
		taken_ref = (refs > 0);
		if
		:: taken_ref -> refs++
		:: else
		fi
	};
	if
	:: taken_ref
	:: else -> goto done
	fi;
#endif
	/* CLOSE */
#ifndef FAULT_CLOSE /* takes the bits back, but the starter may set more */
	shut[RUN] = true;
	shut[WAIT] = true;
#endif
#ifndef FAULT_CLOSE_DISARM /* leaves the bits to those who may never come */
	disarm();
#endif
	drop();
done:
	skip
}

init {
	byte i;
	atomic {
#ifndef FAULT_STARTER
		refs = 1;
#endif
		i = 0;
		do
		:: i < T ->
			if
			:: true
#ifdef ALL_RUN
#elif defined(MUTE)
			:: i < T - 1 -> waiting[i] = true
#else
			:: waiting[i] = true
#endif
			fi;
#ifdef MUTE
			if
			:: i < T - 1 -> run thread(i)
			:: else
			fi;
#else
			run thread(i);
#endif
			i++
		:: else -> break
		od;
		run requester();
#ifdef RIVAL
		run rival();
#endif
		run expirer()
	}
}

#ifndef SAFETY_ONLY
ltl ends { <> over }
#endif
