/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sideband_world.h - what test_sideband.c runs in:
 *
 * perf's rings as the kernel fills them, played in a file that is mapped in its place, with a clock
 * that only the test moves. Rings get full and events are lost, while processes map, fork, exec and
 * end. What processes have mapped, by the test's own book, is what /proc says; and, of a
 * process that is not in doubt, what all the records together say.
 */
#ifndef WALLPROF_SIDEBAND_WORLD_H
#define WALLPROF_SIDEBAND_WORLD_H

#include "images.h"
#include "sideband.h"
#include "sideband_private.h"
#include "test_tools.h"

#define CPUS	  2
#define PAGE	  4096ULL
#define PROCESSES 12
#define SLOTS	  6 /* places where something can be mapped */
#define FIRST	  100
#define DELAY	  (200 * NSEC_PER_USEC)

typedef struct Change {
	uint64_t ns;
	uint32_t slot, file; /* 0 = nothing is there */
} Change;

typedef struct FakeProcess {
	bool is_alive;
	uint32_t mapped[SLOTS];
	VEC(Change) changes;
} FakeProcess;

typedef struct Ring {
	int fd;
	enum sideband_ring kind;
	uint64_t size; /* of the data */
	struct perf_event_mmap_page *page;
	uint64_t lost;
	bool removed; /* its CPU went offline */
} Ring;

typedef struct World {
	ProcessTable table;
	uint64_t now;
	Ring rings[CPUS * SIDEBAND_RINGS];
	int ring_count;
	int open_error;			    /* of a CPU that is opened again, */
	enum sideband_ring open_error_from; /* in this ring and later ones */
	FakeProcess processes[PROCESSES];
	uint32_t last_file;
	uint64_t lost, reads, ended_reads;
	Sideband *sideband;
	Images images;
	VEC(struct rec_loss) losses;
	VEC(uint32_t) read_order;
	uint64_t proc_ns;    /* that a reading of /proc takes */
	bool lose_meanwhile; /* once more while a ring is being emptied, */
	uint64_t lost_ns;    /* then */
} World;

extern World world;

/* Fills what is left of a ring. */
void fill_ring(Ring *ring);
/* Fills both rings of a CPU: what comes next is lost. */
void fill(uint32_t cpu);
/* A process maps a new file; the event comes from that CPU. Returns the file. */
uint32_t map(uint32_t cpu, uint32_t number, uint32_t slot);
void do_fork(uint32_t cpu, uint32_t parent, uint32_t child);
void do_exec(uint32_t cpu, uint32_t number);
void do_exit(uint32_t number);
/* What the records say of a process; NULL if they say nothing. */
const Image *image_of(uint32_t number);
/* The file that the records say is mapped there, or 0. */
uint32_t found_at(uint32_t number, uint32_t slot);
/* A round of the recorder. */
void round_of(bool last);
/* Goes on until all is known that has happened, and compares it with what has. */
void check_when_complete(void);

/* For cmocka. In the beginning, one process is known with all that it has mapped. */
int set_up(void **state);
int tear_down(void **state);

#endif
