/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * metadata.h - what a capture says about the machine and the settings (REC_META), and about the
 * machine's block devices (REC_DEVICE). The keys are listed in docs/reference/capture-format.md.
 */
#ifndef WALLPROF_METADATA_H
#define WALLPROF_METADATA_H

#include "cgroup.h"
#include "fault_hooks.h"
#include "loss.h"
#include "record_options.h"
#include "ring_buffers.h"

typedef struct MetadataInput {
	const RecordOptions *options;
	pid_t command_pid;	    /* 0 = no command */
	const char *hooks;	    /* programs_hooks() */
	const char *waking_context; /* programs_waking_context() */
	const char *own_code;	    /* programs_own_code() */
	FaultOptions faults;
	double ticks_share; /* recording_ticks_share() */
	RingLayout rings;
} MetadataInput;

int metadata_write(const MetadataInput *input, RecordSink sink, void *user);

/* Writes one value that is known only later. */
int metadata_write_one(const char *key, const char *value, RecordSink sink, void *user);

/*
 * Writes the steal time of all CPUs since boot (/proc/stat) under that key. It is called at the
 * start and at the end of the window.
 */
int metadata_write_stolen(const char *key, RecordSink sink, void *user);

/*
 * Sends a REC_DEVICE for each block device that exists now (/sys/dev/block; the kernel's
 * Documentation/ABI). A device that is removed meanwhile is omitted. Returns 0 or the sink's error.
 */
int metadata_write_devices(RecordSink sink, void *user);

/*
 * Writes the cgroup that was throttled longest because of its limit on CPU time, if any was, with
 * the limit and that time. Returns the sink's error.
 */
int metadata_write_cpu_limit(const CgroupCpuLimits *limits, RecordSink sink, void *user);

#endif
