/* SPDX-License-Identifier: MIT
 *
 * An interpreter for the classic BPF of seccomp filters. Jumps lead forward only, so every
 * run ends.
 */
#include "seccomp_filter.h"

#include <string.h>

struct machine {
	const struct seccomp_data *call;
	uint32_t a;
	uint32_t x;
	uint32_t memory[BPF_MEMWORDS];
};

/* Not 0: there is no such source. */
static int load(const struct machine *m, const struct sock_filter *i, uint32_t *value)
{
	switch (i->code & ~(uint32_t)BPF_CLASS(0xff)) {
	case BPF_W | BPF_ABS:
		if (BPF_CLASS(i->code) != BPF_LD || i->k % 4 != 0 ||
		    i->k > sizeof(*m->call) - sizeof(*value))
			return -1;
		memcpy(value, (const char *)m->call + i->k, sizeof(*value));
		return 0;
	case BPF_W | BPF_LEN:
		*value = sizeof(*m->call);
		return 0;
	case BPF_IMM:
		*value = i->k;
		return 0;
	case BPF_MEM:
		if (i->k >= BPF_MEMWORDS)
			return -1;
		*value = m->memory[i->k];
		return 0;
	default:
		return -1;
	}
}

static int store(struct machine *m, const struct sock_filter *i)
{
	if (i->k >= BPF_MEMWORDS)
		return -1;
	m->memory[i->k] = BPF_CLASS(i->code) == BPF_ST ? m->a : m->x;
	return 0;
}

/* A division by zero ends a filter with the result 0. */
static int calculate(struct machine *m, const struct sock_filter *i, int *ended)
{
	const uint32_t b = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_ADD:
		m->a += b;
		return 0;
	case BPF_SUB:
		m->a -= b;
		return 0;
	case BPF_MUL:
		m->a *= b;
		return 0;
	case BPF_DIV:
		*ended = b == 0;
		m->a = b == 0 ? 0 : m->a / b;
		return BPF_SRC(i->code) == BPF_K && b == 0 ? -1 : 0;
	case BPF_AND:
		m->a &= b;
		return 0;
	case BPF_OR:
		m->a |= b;
		return 0;
	case BPF_XOR:
		m->a ^= b;
		return 0;
	case BPF_LSH:
		m->a <<= b & 31;
		return BPF_SRC(i->code) == BPF_K && b > 31 ? -1 : 0;
	case BPF_RSH:
		m->a >>= b & 31;
		return BPF_SRC(i->code) == BPF_K && b > 31 ? -1 : 0;
	case BPF_NEG:
		m->a = 0 - m->a;
		return 0;
	default:
		return -1;
	}
}

/* How many instructions are skipped; negative: there is no such jump. */
static int64_t jump(const struct machine *m, const struct sock_filter *i)
{
	const uint32_t b = BPF_SRC(i->code) == BPF_X ? m->x : i->k;

	switch (BPF_OP(i->code)) {
	case BPF_JA:
		return i->k;
	case BPF_JEQ:
		return m->a == b ? i->jt : i->jf;
	case BPF_JGT:
		return m->a > b ? i->jt : i->jf;
	case BPF_JGE:
		return m->a >= b ? i->jt : i->jf;
	case BPF_JSET:
		return (m->a & b) != 0 ? i->jt : i->jf;
	default:
		return -1;
	}
}

static int move(struct machine *m, const struct sock_filter *i)
{
	if (i->code == (BPF_MISC | BPF_TAX))
		m->x = m->a;
	else if (i->code == (BPF_MISC | BPF_TXA))
		m->a = m->x;
	else
		return -1;
	return 0;
}

/* One instruction that is neither a jump nor a return. */
static int step(struct machine *m, const struct sock_filter *i, int *ended)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		return load(m, i, &m->a);
	case BPF_LDX:
		return load(m, i, &m->x);
	case BPF_ST:
	case BPF_STX:
		return store(m, i);
	case BPF_ALU:
		return calculate(m, i, ended);
	case BPF_MISC:
		return move(m, i);
	default:
		return -1;
	}
}

int incstack__seccomp_run(const struct sock_filter *filter, size_t count,
			  const struct seccomp_data *call, uint32_t *result)
{
	struct machine m = {.call = call};
	int ended = 0;

	if (!filter || count == 0 || count > BPF_MAXINSNS)
		return -1;
	for (size_t at = 0; at < count; at++) {
		const struct sock_filter *i = &filter[at];

		if (BPF_CLASS(i->code) == BPF_RET) {
			*result = BPF_RVAL(i->code) == BPF_A ? m.a : i->k;
			return 0;
		}
		if (BPF_CLASS(i->code) == BPF_JMP) {
			const int64_t skipped = jump(&m, i);

			if (skipped < 0 || (uint64_t)skipped >= count - at)
				return -1;
			at += (size_t)skipped;
			continue;
		}
		if (step(&m, i, &ended) != 0)
			return -1;
		if (ended) {
			*result = 0;
			return 0;
		}
	}
	return -1;
}

bool incstack__seccomp_survives(uint32_t result)
{
	switch (result & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_ALLOW:
	case SECCOMP_RET_LOG:
	case SECCOMP_RET_ERRNO:
		return true;
	default:
		return false;
	}
}
