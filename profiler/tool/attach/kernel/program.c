/* SPDX-License-Identifier: MIT
 *
 * Makes the programs that the kernel runs at a probe (BPF). Such a program runs for every thread of
 * the process, also for those that begin later. It writes a record with the number of the probe, and
 * the kernel adds registers and stack.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "program.h"

enum { THREADS_MOST = 16384 }; /* inside of functions with an indirect result, at a time */

/* Where the programs keep what they write, from the end of their stack: the record (number and
 * value), the thread, and a place. */
enum { RECORD_AT = -12, VALUE_AT = -8, THREAD_AT = -24, PLACE_AT = -32, RECORD_BYTES = 12 };

static int bpf(int command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int make_map(uint32_t type, uint32_t key, uint32_t value, size_t count)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key,
		.value_size = value,
		.max_entries = (uint32_t)count,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

int tool_attach_maps_open(struct tool_attach_maps *maps, size_t processors)
{
	bool failed;

	maps->places =
		make_map(BPF_MAP_TYPE_LRU_HASH, sizeof(uint64_t), sizeof(uint64_t), THREADS_MOST);
	failed = maps->places < 0;
	for (int i = 0; i < TOOL_ATTACH_HIT_KINDS; i++) {
		maps->outputs[i] =
			failed ? -1
			       : make_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(uint32_t),
					  sizeof(uint32_t), processors);
		failed |= maps->outputs[i] < 0;
	}
	return failed ? errno : 0;
}

int tool_attach_maps_set(int map, unsigned processor, int event)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)map,
		.key = (uintptr_t)&processor,
		.value = (uintptr_t)&event,
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

void tool_attach_maps_clear(int map, unsigned processor)
{
	union bpf_attr attr = {.map_fd = (uint32_t)map, .key = (uintptr_t)&processor};

	bpf(BPF_MAP_DELETE_ELEM, &attr);
}

void tool_attach_maps_close(struct tool_attach_maps *maps)
{
	close(maps->places);
	for (int i = 0; i < TOOL_ATTACH_HIT_KINDS; i++)
		close(maps->outputs[i]);
}

/* ---- instructions ------------------------------------------------------------------------ */

struct program {
	struct bpf_insn code[48];
	size_t count;
};

static void put(struct program *program, uint8_t code, unsigned to, unsigned from, int16_t offset,
		int32_t value)
{
	program->code[program->count++] = (struct bpf_insn){.code = code,
							    .dst_reg = to & 15u,
							    .src_reg = from & 15u,
							    .off = offset,
							    .imm = value};
}

static void copy(struct program *program, unsigned to, unsigned from)
{
	put(program, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0);
}

static void set(struct program *program, unsigned to, int32_t value)
{
	put(program, BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, value);
}

/* The address of a word on the program's stack. */
static void point(struct program *program, unsigned to, int16_t at)
{
	copy(program, to, BPF_REG_10);
	put(program, BPF_ALU64 | BPF_ADD | BPF_K, to, 0, 0, at);
}

static void set_map(struct program *program, unsigned to, int map)
{
	put(program, BPF_LD | BPF_DW | BPF_IMM, to, BPF_PSEUDO_MAP_FD, 0, map);
	put(program, 0, 0, 0, 0, 0);
}

static void call(struct program *program, int32_t function)
{
	put(program, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

static void put_thread(struct program *program)
{
	call(program, BPF_FUNC_get_current_pid_tgid);
	put(program, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, THREAD_AT, 0);
}

/* In register 7. A link gives the program the number of the probe that was hit. */
static void find_number(struct program *program, uint32_t number, bool is_linked)
{
	if (is_linked)
		call(program, BPF_FUNC_get_attach_cookie);
	else
		set(program, BPF_REG_0, (int32_t)number);
	copy(program, BPF_REG_7, BPF_REG_0);
	put(program, BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_7, RECORD_AT, 0);
}

/* What follows is skipped unless the function has an indirect result. Returns where, for end_if(). */
static size_t if_indirect(struct program *program)
{
	put(program, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_7, 0, 0, TOOL_ATTACH_POSIX_MEMALIGN);
	return program->count;
}

static void end_if(struct program *program, size_t at)
{
	program->code[at - 1].off = (int16_t)(program->count - at);
}

/* Notes where the thread wants the result: its first argument. */
static void note_place(struct program *program, int places)
{
	put_thread(program);
	put(program, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6,
	    offsetof(struct user_regs_struct, rdi), 0);
	put(program, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_1, PLACE_AT, 0);
	set_map(program, BPF_REG_1, places);
	point(program, BPF_REG_2, THREAD_AT);
	point(program, BPF_REG_3, PLACE_AT);
	set(program, BPF_REG_4, BPF_ANY);
	call(program, BPF_FUNC_map_update_elem);
}

/* Reads the result from there, if the call was seen. */
static void read_place(struct program *program, int places)
{
	size_t at;

	put_thread(program);
	set_map(program, BPF_REG_1, places);
	point(program, BPF_REG_2, THREAD_AT);
	call(program, BPF_FUNC_map_lookup_elem);
	put(program, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 0, 0);
	at = program->count;
	put(program, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_3, BPF_REG_0, 0, 0);
	point(program, BPF_REG_1, VALUE_AT);
	set(program, BPF_REG_2, sizeof(uint64_t));
	call(program, BPF_FUNC_probe_read_user);
	end_if(program, at);
}

static void end(struct program *program)
{
	set(program, BPF_REG_0, 0);
	put(program, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

static int load(const struct program *program, bool is_linked)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.expected_attach_type = is_linked ? TOOL_ATTACH_UPROBE_MULTI : 0,
		.insns = (uintptr_t)program->code,
		.insn_cnt = (uint32_t)program->count,
		.license = (uintptr_t) "Dual MIT/GPL",
	};

	return bpf(BPF_PROG_LOAD, &attr);
}

int tool_attach_program_empty(void)
{
	struct program program = {.count = 0};

	end(&program);
	return load(&program, true);
}

static void write_record(struct program *program, int output)
{
	copy(program, BPF_REG_1, BPF_REG_6);
	set_map(program, BPF_REG_2, output);
	put(program, BPF_ALU | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, -1); /* BPF_F_CURRENT_CPU */
	point(program, BPF_REG_4, RECORD_AT);
	set(program, BPF_REG_5, RECORD_BYTES);
	call(program, BPF_FUNC_perf_event_output);
}

int tool_attach_program_load(const struct tool_attach_maps *maps,
			     const struct tool_attach_probe *probe, bool is_linked)
{
	struct program program = {.count = 0};
	size_t at;

	copy(&program, BPF_REG_6, BPF_REG_1); /* the registers of the thread */
	put(&program, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_10, 0, VALUE_AT, 0);
	find_number(&program, probe->number, is_linked);
	at = if_indirect(&program);
	if (probe->kind == TOOL_ATTACH_ENTRY)
		note_place(&program, maps->places);
	if (probe->kind == TOOL_ATTACH_RETURN)
		read_place(&program, maps->places);
	end_if(&program, at);
	write_record(&program, maps->outputs[probe->kind]);
	end(&program);
	return load(&program, is_linked);
}
