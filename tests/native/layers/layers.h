/* SPDX-License-Identifier: MIT
 *
 * What the instrumented program and the checks of test_layers share.
 */
#ifndef LAYERS_H
#define LAYERS_H

#include <cstdint>

/* All instrumented functions lie between these. */
extern "C" const char __start_layered[], __stop_layered[];

/* The instrumented functions, in no order. */
extern const std::uintptr_t layered_functions[];
extern const int layered_count;

/* The program: calls in every way that it knows, up to this depth. */
long layered_work(int depth);

/* For the program: a poll. */
void layers_poll();

/* How many instrumented functions are active; from now on frames vanish until only so many are left;
 * control has arrived there. */
int layers_depth();
void layers_leave(int left);
void layers_arrive(int left);

std::uint32_t layers_chance(std::uint32_t n);

#endif
