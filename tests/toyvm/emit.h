/* SPDX-License-Identifier: MIT
 *
 * The few x86-64 instructions that stubs.c and jit.c need, as bytes.
 */
#ifndef TOYVM_EMIT_H
#define TOYVM_EMIT_H

#include <stdint.h>
#include <string.h>

enum reg { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };

struct emitter {
	uint8_t *at, *end; /* if equal, the emitter is full */
};

static inline void emit_bytes(struct emitter *e, const void *bytes, size_t n)
{
	if ((size_t)(e->end - e->at) < n) {
		e->at = e->end;
		return;
	}
	memcpy(e->at, bytes, n);
	e->at += n;
}

#define EMIT(e, ...) \
	emit_bytes(e, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static inline void emit_int(struct emitter *e, int32_t n)
{
	emit_bytes(e, &n, sizeof(n));
}

/* opcode reg, [base + offset], 64 bits wide. */
static inline void emit_memory(struct emitter *e, uint8_t opcode, unsigned reg, unsigned base,
			       int64_t offset)
{
	EMIT(e, (uint8_t)(0x48 | (reg >> 3) << 2 | base >> 3), opcode,
	     (uint8_t)(0x80 | (reg & 7) << 3 | (base & 7)));
	if ((base & 7) == RSP)
		EMIT(e, 0x24);
	emit_int(e, (int32_t)offset);
}

static inline void emit_load(struct emitter *e, unsigned reg, unsigned base, int64_t offset)
{
	emit_memory(e, 0x8b, reg, base, offset);
}

static inline void emit_store(struct emitter *e, unsigned base, int64_t offset, unsigned reg)
{
	emit_memory(e, 0x89, reg, base, offset);
}

static inline void emit_constant(struct emitter *e, unsigned reg, uint64_t n)
{
	EMIT(e, (uint8_t)(0x48 | reg >> 3), (uint8_t)(0xb8 | (reg & 7)));
	emit_bytes(e, &n, sizeof(n));
}

/* opcode to, from between registers, 64 bits wide. */
static inline void emit_registers(struct emitter *e, uint8_t opcode, unsigned to, unsigned from)
{
	EMIT(e, (uint8_t)(0x48 | (from >> 3) << 2 | to >> 3), opcode,
	     (uint8_t)(0xc0 | (from & 7) << 3 | (to & 7)));
}

/* jmp or call [base + offset]: extension 4 or 2. */
static inline void emit_through(struct emitter *e, unsigned extension, unsigned base,
				int64_t offset)
{
	emit_memory(e, 0xff, extension, base, offset);
}

/* jmp (0xe9) or call (0xe8) to an address that is near enough for 32 bits. */
static inline void emit_to(struct emitter *e, uint8_t opcode, uintptr_t target)
{
	EMIT(e, opcode);
	emit_int(e, (int32_t)((intptr_t)target - (intptr_t)(e->at + 4)));
}

/* jcc with its target left open; returns where to write it. */
static inline uint8_t *emit_branch(struct emitter *e, uint8_t condition)
{
	EMIT(e, 0x0f, (uint8_t)(0x80 | condition));
	emit_int(e, 0);
	return e->at - 4;
}

static inline void emit_land(const struct emitter *e, uint8_t *branch, const uint8_t *target)
{
	int32_t distance = (int32_t)(target - (branch + 4));
	if (e->at < e->end)
		memcpy(branch, &distance, sizeof(distance));
}

#endif
