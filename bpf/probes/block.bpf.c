/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block.bpf.c - requests to block devices: the submitter, the file, when the driver got the
 * request, when it completed.
 *
 * When a bio is queued, the current task is its submitter, unless a cgroup's limit has held the bio
 * back: then the submitter was the current task when that began (block/blk-throttle.c). All later
 * steps may run in any task (a kworker, or whatever was interrupted). So the submitter is stored by
 * the bio's address, and copied to the request when that is first seen with the bio in it. A
 * request is stored by its address until it completes. Some requests are never inserted (no
 * scheduler), some are never issued (a flush that was not needed), some are issued several times
 * (requeued); some devices make no requests at all.
 */
#include "block.bpf.h"
#include "cost.bpf.h"
#include "script_programs.bpf.h"
#include "syscall.bpf.h"

#define BIOS_MAX 1024 /* limit of bios in a request: BLK_MAX_REQUEST_COUNT and more */

/*
 * Returns a tracepoint's first argument as a number: the argument itself is a pointer for the
 * verifier, which global functions and maps do not take.
 */
static __always_inline u64 first_argument(void *ctx)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), ctx);
	return address;
}

/* ---- submitting ----------------------------------------------------------------------- */

/* An io_uring worker submits for the thread that queued the work; stores that thread. */
static __always_inline bool adopt_ring_work(struct rec_request *record, struct task_struct *task)
{
	struct io_worker *worker = BPF_CORE_READ(task, worker_private);
	struct ring_work *work;
	u64 key;

	if (!bpf_core_type_exists(struct io_worker) || !worker)
		return false;
	key = (u64)BPF_CORE_READ(worker, cur_work);
	work = bpf_map_lookup_elem(&ring_works, &key);
	if (!work) {
		__sync_fetch_and_add(&request_counts.unattributed, 1);
		return false;
	}
	record->tid = work->tid;
	record->ustack = work->ustack;
	record->via = VIA_RING_WORKER;
	return true;
}

static __always_inline void submitter_of(struct rec_request *record, struct task_struct *task,
					 void *ctx)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	record->tid = task->pid;
	record->h.flags |= REQUEST_SUBMITTED;
	if (is_target(task)) {
		record->h.flags |= REQUEST_TARGET;
		if (!(task->flags & PF_IO_WORKER) || !adopt_ring_work(record, task))
			record->ustack = own_user_stack(ctx, task, (s64)regs->orig_ax >= 0,
							record->submit_ns);
	} else if (task->flags & PF_KTHREAD) {
		record->h.flags |= REQUEST_KTHREAD;
	}
}

/* rec_request::held_us as long as the bio is not queued */
#define NOT_QUEUED ~0U

/* The current task has submitted the bio. */
static __always_inline void begin_bio(void *ctx, u64 key, u64 ns, u32 held_us)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct rec_request *before = bpf_map_lookup_elem(&open_bios, &key), record = {};

	record.h.flags = 0;
	record.submit_ns = ns;
	record.held_us = held_us;
	/*
	 * on_bio_remapped() may have stored the device that the bio is a part of: in the same call,
	 * or before the driver left the rest to its kernel thread.
	 */
	if (before && before->over_device && !(before->h.flags & REQUEST_SUBMITTED) &&
	    (before->tid == (u32)task->pid || task->flags & PF_KTHREAD))
		record.over_device = before->over_device;
	block_describe_bio(&record, key);
	submitter_of(&record, task, ctx);
	if (record.h.flags & (REQUEST_TARGET | REQUEST_KTHREAD))
		block_find_file(&record, key);
	/* Other processes, too, are named beside those whose requests they delay. */
	if (!(record.h.flags & REQUEST_TARGET))
		describe_non_target(task, ns);
	if (record.ustack && held_us != NOT_QUEUED)
		script_note(SCRIPT_AT_REQUEST, record.tid, ns);
	bpf_map_update_elem(&open_bios, &key, &record, BPF_ANY);
}

/* Whether the bio at this address is still the one that was submitted. */
static __always_inline bool is_same_bio(const struct rec_request *before, u64 key)
{
	struct rec_request now = {};

	if (!(before->h.flags & REQUEST_SUBMITTED))
		return false;
	block_describe_bio(&now, key);
	return before->device == now.device && before->opf == now.opf &&
	       before->sector == now.sector && before->bytes == now.bytes;
}

/*
 * A cgroup has a limit for the device, so the bio may be queued at once, or later by a worker. If a
 * bio was too large and was queued as a whole, the rest of it passes here once more.
 */
static __always_inline void bio_limited(void *ctx, u64 ns)
{
	u64 key = first_argument(ctx);
	struct rec_request *before = bpf_map_lookup_elem(&open_bios, &key);

	if (!before || !is_same_bio(before, key))
		begin_bio(ctx, key, ns, NOT_QUEUED);
}

SEC("fentry/__blk_throtl_bio")
int BPF_PROG(on_bio_limited, struct bio *bio)
{
	u64 ns = bpf_ktime_get_ns();

	bio_limited(ctx, ns);
	cost_add(ns);
	return 0;
}

/* Returns the elapsed time in microseconds, limited to what the field can hold. */
static __always_inline u32 held_since(u64 submit_ns)
{
	u64 us = (bpf_ktime_get_ns() - submit_ns) / 1000;

	return us < NOT_QUEUED ? us : NOT_QUEUED - 1;
}

static __always_inline void bio_queued(void *ctx, u64 ns)
{
	u64 key = first_argument(ctx);
	struct rec_request *before = bpf_map_lookup_elem(&open_bios, &key);

	if (before && before->held_us == NOT_QUEUED && is_same_bio(before, key)) {
		before->held_us = held_since(before->submit_ns);
		/*
		 * Unless it was held back, this is still the call that has submitted it. Only
		 * targets have a stack.
		 */
		if (before->ustack)
			script_note(SCRIPT_AT_REQUEST, before->tid, before->submit_ns);
	} else {
		begin_bio(ctx, key, ns, 0);
	}
}

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queued, struct bio *bio)
{
	u64 ns = bpf_ktime_get_ns();

	bio_queued(ctx, ns);
	cost_add(ns);
	return 0;
}

/* A device driver has made a bio for a part of one that it was given. */
static __always_inline void bio_remapped(void *ctx, struct bio *bio, unsigned int device)
{
	u64 key = first_argument(ctx);
	struct rec_request *before = bpf_map_lookup_elem(&open_bios, &key), record = {};

	/* Remapping from a partition to its disk is not recorded. */
	if (BPF_CORE_READ(bio, bi_bdev, bd_dev) == device || block_disk_of(key) == device)
		return;
	/* The same bio is sent on another path (nvme), and is not queued again. */
	if (before && before->h.flags & REQUEST_SUBMITTED)
		return;
	record.tid = bpf_get_current_task_btf()->pid;
	record.over_device = device;
	bpf_map_update_elem(&open_bios, &key, &record, BPF_ANY);
}

SEC("tp_btf/block_bio_remap")
int BPF_PROG(on_bio_remapped, struct bio *bio, unsigned int device, u64 sector)
{
	u64 ns = bpf_ktime_get_ns();

	bio_remapped(ctx, bio, device);
	cost_add(ns);
	return 0;
}

/*
 * A bio that is too large is split: the first part becomes a bio of its own, chained to the rest.
 */
static __always_inline void bio_split(void *ctx, struct bio *bio)
{
	u64 key = first_argument(ctx), whole = (u64)BPF_CORE_READ(bio, bi_private);
	struct rec_request *open = bpf_map_lookup_elem(&open_bios, &whole), record;

	if (!open)
		return;
	open->h.flags |= REQUEST_SPLIT;
	record = *open;
	block_describe_bio(&record, key);
	record.offset = open->offset;
	bpf_map_update_elem(&open_bios, &key, &record, BPF_ANY);
	/* The original bio describes only the rest by now. */
	block_describe_bio(open, whole);
	open->offset = record.offset == ~0ULL ? ~0ULL : record.offset + record.bytes;
}

SEC("tp_btf/block_split")
int BPF_PROG(on_bio_split, struct bio *bio, unsigned int sector)
{
	u64 ns = bpf_ktime_get_ns();

	bio_split(ctx, bio);
	cost_add(ns);
	return 0;
}

/*
 * A bio that never was in a request has completed. Bios that were in one are no longer in
 * open_bios.
 */
static __always_inline void bio_completed(struct bio *bio, u64 ns)
{
	u64 key = (u64)bio;
	struct rec_request *open = bpf_map_lookup_elem(&open_bios, &key), record;

	if (!open)
		return;
	record = *open;
	bpf_map_delete_elem(&open_bios, &key);
	if (!(record.h.flags & REQUEST_SUBMITTED))
		return;
	record_init(&record.h, REC_REQUEST, record.h.flags | REQUEST_BIO, sizeof(record), ns);
	record.status = BPF_CORE_READ(bio, bi_status);
	if (record.held_us == NOT_QUEUED)
		record.held_us = 0;
	emit(RING_BULK, &record.h, sizeof(record));
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_completed, struct request_queue *queue, struct bio *bio)
{
	u64 ns = bpf_ktime_get_ns();

	bio_completed(bio, ns);
	cost_add(ns);
	return 0;
}

/* ---- requests -------------------------------------------------------------------------- */

struct bio_adoption {
	struct rec_request *record;
	u64 bio;
	bool hidden; /* the request is for a path, and the bio for the device that the path leads to
		      */
};

/*
 * Copies a bio's fields to its request: all fields of the first bio; of the others only how they
 * differ.
 */
static long adopt_bio(u32 i, struct bio_adoption *adoption)
{
	struct rec_request *record = adoption->record, *open;
	u64 key = adoption->bio;

	if (!key)
		return 1;
	adoption->bio = (u64)BPF_CORE_READ((struct bio *)key, bi_next);
	open = bpf_map_lookup_elem(&open_bios, &key);
	if (!open)
		return 0;
	if (!(record->h.flags & REQUEST_SUBMITTED)) {
		record->h.flags |= open->h.flags & ~REQUEST_INSERTED;
		record->tid = open->tid;
		record->submit_ns = open->submit_ns;
		record->ustack = open->ustack;
		record->via = open->via;
		if (adoption->hidden)
			record->device = open->device;
		record->inode = open->inode;
		record->generation = open->generation;
		record->offset = open->offset;
		record->file_device = open->file_device;
		record->over_device = open->over_device;
		record->held_us = open->held_us == NOT_QUEUED ? 0 : open->held_us;
	} else {
		record->merges += 1 + open->merges;
		if (record->tid != open->tid || record->inode != open->inode)
			record->h.flags |= REQUEST_MIXED;
	}
	bpf_map_delete_elem(&open_bios, &key);
	return 0;
}

static __always_inline void describe_request(struct rec_request *record, struct request *rq)
{
	struct bio_adoption adoption = {
		.record = record,
		.bio = (u64)BPF_CORE_READ(rq, bio),
		.hidden = BPF_CORE_READ(rq, q, disk, flags) & GENHD_FL_HIDDEN,
	};

	if (!(record->h.flags & REQUEST_SUBMITTED))
		record->device = BPF_CORE_READ(rq, q, disk, part0, bd_dev);
	record->opf = BPF_CORE_READ(rq, cmd_flags);
	record->sector = BPF_CORE_READ(rq, __sector);
	bpf_loop(BIOS_MAX, adopt_bio, &adoption, 0);
}

/* Returns the record of a request; adds one if the request is seen for the first time. */
static __always_inline struct rec_request *request_of(struct request *rq)
{
	u64 key = (u64)rq, start = BPF_CORE_READ(rq, start_time_ns);
	struct rec_request *record = bpf_map_lookup_elem(&open_requests, &key), first = {};

	/*
	 * A request is as old as the oldest one merged into it (attempt_merge() in
	 * block/blk-merge.c).
	 */
	if (record && start < record->start_ns && !record->issues)
		record->start_ns = start;
	if (record && record->start_ns == start)
		return record;
	if (record && record->issues)
		__sync_fetch_and_add(&request_counts.unfinished, 1);
	first.start_ns = start;
	first.offset = ~0ULL;
	if (bpf_map_update_elem(&open_requests, &key, &first, BPF_ANY)) {
		__sync_fetch_and_add(&request_counts.no_slot, 1);
		return NULL;
	}
	return bpf_map_lookup_elem(&open_requests, &key);
}

static __always_inline void request_inserted(struct request *rq)
{
	struct rec_request *record = request_of(rq);

	if (!record)
		return;
	record->h.flags |= REQUEST_INSERTED;
	describe_request(record, rq);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_request_inserted, struct request *rq)
{
	u64 ns = bpf_ktime_get_ns();

	request_inserted(rq);
	cost_add(ns);
	return 0;
}

/* From now on its bios belong to another request, which adopts them as if they were new. */
static __always_inline void request_merged(struct request *rq)
{
	u64 key = (u64)rq, bio = (u64)BPF_CORE_READ(rq, bio);
	struct rec_request *record = bpf_map_lookup_elem(&open_requests, &key), merged;

	if (!record)
		return;
	merged = *record;
	bpf_map_delete_elem(&open_requests, &key);
	if (bio && merged.h.flags & REQUEST_SUBMITTED)
		bpf_map_update_elem(&open_bios, &bio, &merged, BPF_ANY);
}

SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_request_merged, struct request *rq)
{
	u64 ns = bpf_ktime_get_ns();

	request_merged(rq);
	cost_add(ns);
	return 0;
}

static __always_inline void request_issued(struct request *rq, u64 ns)
{
	struct rec_request *record = request_of(rq);

	if (!record)
		return;
	record->issue_ns = ns;
	record->issues++;
	/*
	 * Adopts the bios that were merged into it since. After a partial completion the bio list
	 * has advanced.
	 */
	if (!record->partials)
		describe_request(record, rq);
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_request_issued, struct request *rq)
{
	u64 ns = bpf_ktime_get_ns();

	request_issued(rq, ns);
	cost_add(ns);
	return 0;
}

static __always_inline void request_completed(struct request *rq, u8 status, unsigned int bytes,
					      u64 ns)
{
	struct rec_request *record = request_of(rq);
	u64 key = (u64)rq;

	if (!record)
		return;
	if (!record->issues && !record->partials) {
		describe_request(record, rq);
		/*
		 * The completion of a part of a flush, or of a write with a flush, which is
		 * reported by itself (block/blk-flush.c).
		 */
		if (!bytes && !(record->h.flags & (REQUEST_SUBMITTED | REQUEST_INSERTED))) {
			bpf_map_delete_elem(&open_requests, &key);
			return;
		}
	}
	record->bytes += bytes;
	if (bytes < BPF_CORE_READ(rq, __data_len)) {
		record->partials++;
		return;
	}
	record_init(&record->h, REC_REQUEST, record->h.flags, sizeof(*record), ns);
	record->status = status;
	emit(RING_BULK, &record->h, sizeof(*record));
	bpf_map_delete_elem(&open_requests, &key);
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_request_completed, struct request *rq, u8 status, unsigned int bytes)
{
	u64 ns = bpf_ktime_get_ns();

	request_completed(rq, status, bytes, ns);
	cost_add(ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
