/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recorder_args.c - argument lists of processes that are not executed while they are recorded, and
 * those that a process has written over its own (a title).
 */
#include "recorder_private.h"
#include "util.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef union ArgsRecord {
	struct rec_args args;
	/* One byte more shows that the list is longer; it is also room for alignment. */
	uint8_t bytes[sizeof(struct rec_args) + ARGS_MAX + sizeof(uint64_t)];
} ArgsRecord;

/* Returns a hash that is not 0. */
static uint64_t args_hash(const char *text, size_t size)
{
	uint64_t hash = size;

	for (size_t i = 0; i < size; i++)
		hash = hash_mix(hash, (unsigned char)text[i]);
	return hash | 1;
}

void recording_on_args(Recording *recording, const struct rec_args *args)
{
	Process *process = process_table_find_tgid(&recording->processes, args->tgid);

	if (process)
		process->args_hash = args_hash(args->text, args->size);
}

/* Returns how many bytes were read, at most ARGS_MAX + 1; 0: nothing can be read. */
static size_t read_args(uint32_t ns_tgid, char *text)
{
	char path[32];
	ssize_t size;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/cmdline", ns_tgid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, ARGS_MAX + 1);
	close(fd);
	return size > 0 ? size : 0;
}

int recording_add_args(Recording *recording, uint32_t ns_tgid)
{
	Process *process = process_table_find(&recording->processes, ns_tgid);
	ArgsRecord record = {};
	size_t total, size, length;
	uint64_t hash;

	if (recording->options->no_args || !process || !process->tgid)
		return 0;
	/* This one is a copy of wallprof until it executes the command. */
	if (recording->launched && !recording->launched_running &&
	    ns_tgid == (uint32_t)recording->launch.pid)
		return 0;
	total = read_args(ns_tgid, record.args.text);
	size = MIN(total, (size_t)ARGS_MAX);
	hash = args_hash(record.args.text, size);
	if (size == 0 || hash == process->args_hash)
		return 0;
	process->args_hash = hash;
	memset(record.args.text + size, 0, sizeof(uint64_t));
	length = (sizeof(record.args) + size + 7) & ~7UL;
	record.args.h = (struct record){
		.len = length, .kind = REC_ARGS, .flags = ARGS_FROM_PROC, .ns = now_ns()};
	record.args.tgid = process->tgid;
	record.args.total = total;
	record.args.size = size;
	return recording_write(recording, &record.args.h);
}

int recording_add_all_args(Recording *recording)
{
	int error = 0;

	for (size_t i = 0; i < recording->processes.list.count && !error; i++)
		if (recording->processes.list.items[i].state >= PROCESS_WANTED)
			error = recording_add_args(recording,
						   recording->processes.list.items[i].ns_tgid);
	return error;
}
