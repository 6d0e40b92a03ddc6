/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "moved_text.h"
#include "proc_maps.h"
#include "proc_status.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ULL
/* Between two readings of the clock: the rings fill meanwhile. */
#define BLOCK	      (256u << 10)
#define LAST_PAUSE_NS NSEC_PER_SEC
/* The pauses double, so this is a second after the memory was mapped. */
#define LOOKS_MAX 10

/* ---- the process's mappings --------------------------------------------------------------- */

/* A line of /proc/PID/maps. */
typedef struct Region {
	uint64_t start, end, pgoff, inode;
	bool exec;
	char *path;		/* NULL: not a file's */
	uint32_t before, after; /* the next regions of files, or NO_REGION */
} Region;

#define NO_REGION UINT32_MAX

typedef VEC(Region) Regions;

static void free_regions(Regions *regions)
{
	for (size_t i = 0; i < regions->count; i++)
		free(regions->items[i].path);
	vec_free(regions);
}

static void find_neighbours(Regions *regions)
{
	uint32_t last = NO_REGION;

	for (size_t i = 0; i < regions->count; i++) {
		regions->items[i].before = last;
		last = regions->items[i].path ? i : last;
	}
	last = NO_REGION;
	for (size_t i = regions->count; i-- > 0;) {
		regions->items[i].after = last;
		last = regions->items[i].path ? i : last;
	}
}

static int add_region(void *user, const ProcMapping *mapping)
{
	Regions *regions = user;

	*vec_push(regions) = (Region){
		.start = mapping->start,
		.end = mapping->end,
		.pgoff = mapping->pgoff,
		.inode = mapping->inode,
		.exec = mapping->exec,
		.path = mapping->inode && !proc_maps_is_anonymous(mapping->path)
				? xstrdup(mapping->path)
				: NULL,
	};
	return 0;
}

static int read_regions(pid_t tid, Regions *regions)
{
	int error = proc_maps_each(tid, add_region, regions);

	find_neighbours(regions);
	return error ? error : regions->count ? 0 : -ESRCH;
}

/* ---- comparing ---------------------------------------------------------------------------- */

/* A part of a file's text, and where it would be in the process. */
typedef struct Text {
	uint64_t start, end; /* AVMA */
	uint64_t offset;     /* of start in the file */
	uint64_t bias;
	uint32_t file;
} Text;

enum comparison { TEXT_SAME, TEXT_DIFFERENT, TEXT_LATER };

/* Returns whether its files are in memory, or are those of another file system. */
static bool reads_at_once(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ||
		fs.f_type == HUGETLBFS_MAGIC || fs.f_type == OVERLAYFS_SUPER_MAGIC);
}

/*
 * Reads what is in memory: the recorder must not wait for a disk, and even less for a server of
 * files that does not answer. Returns -EAGAIN if nothing is yet, and 0 at the end of the file.
 */
static ssize_t read_cached(int fd, void *to, size_t size, uint64_t offset)
{
	struct iovec part = {.iov_base = to, .iov_len = size};
	ssize_t got = preadv2(fd, &part, 1, offset, RWF_NOWAIT);

	if (got < 0 && errno == EOPNOTSUPP && reads_at_once(fd))
		got = pread(fd, to, size, offset);
	return got < 0 ? -errno : got;
}

/*
 * All bytes are compared, because a program may also have changed its copy. That takes some 0.3 ms
 * a MiB, so it goes on in the next call.
 */
static enum comparison compare_text(MovedProcess *process, RemoteProcess *remote, const Text *text,
				    int fd, uint64_t deadline_ns)
{
	static uint8_t memory[BLOCK], bytes[BLOCK];
	MovedProgress *progress = &process->progress;
	uint64_t same = 0;

	if (progress->start == text->start && progress->file == text->file)
		same = MIN(progress->same, text->end - text->start);
	*progress = (MovedProgress){};
	while (same < text->end - text->start) {
		size_t size = MIN(text->end - text->start - same, (uint64_t)BLOCK);
		ssize_t got = read_cached(fd, bytes, size, text->offset + same);

		/* The next look, of which there are not many, will find it in memory. */
		if (got == -EAGAIN)
			posix_fadvise(fd, text->offset + same, text->end - text->start - same,
				      POSIX_FADV_WILLNEED);
		if (got <= 0 || !remote_memory_bring(remote, text->start + same, memory, got) ||
		    memcmp(memory, bytes, got) != 0)
			return TEXT_DIFFERENT;
		same += got;
		if (same < text->end - text->start && now_ns() >= deadline_ns) {
			*progress = (MovedProgress){text->start, text->file, same};
			return TEXT_LATER;
		}
	}
	return TEXT_SAME;
}

/* Finds what of the region a segment of the file would cover. Returns false if nothing. */
static bool overlap(const ElfSegment *load, uint64_t bias, const Region *region, Text *ret_text)
{
	uint64_t start = load->vaddr + bias, end = start + load->file_size;

	if (!load->exec || end <= start || end <= region->start || start >= region->end)
		return false;
	ret_text->start = MAX(start, region->start);
	ret_text->end = MIN(end, region->end);
	ret_text->offset = load->offset + (ret_text->start - start);
	ret_text->bias = bias;
	return true;
}

/* ---- what is found ------------------------------------------------------------------------ */

/*
 * It is recorded with the time of the mapping that was noted, but not so late that the readers of
 * captures no longer expect it (capture_sort.c).
 */
#define LATE_NS (900 * NSEC_PER_MSEC)

static int emit_mapping(MappedFiles *files, const MovedProcess *process,
			const MovedSuspect *suspect, const Text *text, const Region *region)
{
	uint64_t start = MAX(text->start & ~(PAGE - 1), MAX(region->start, suspect->start));
	uint64_t end = MIN((text->end + PAGE - 1) & ~(PAGE - 1), MIN(region->end, suspect->end));
	struct rec_mapping record = {
		.h = {.len = sizeof(record),
		      .kind = REC_MAPPING,
		      .flags = MAPPING_EXEC | (suspect->initial ? MAPPING_INITIAL : 0),
		      .ns = MAX(suspect->ns, now_ns() - LATE_NS)},
		.ns_tgid = process->ns_tgid,
		.file = text->file,
		.start = start,
		.end = end,
		/* Modulo 2^64: the region may begin before the segment does. */
		.pgoff = text->offset - (text->start - start),
		.bias = text->bias,
	};

	return start < end ? mapped_files_emit(files, &record.h) : 0;
}

/* Handles one region of the process. */
typedef struct Look {
	MappedFiles *files;
	MovedProcess *process;
	RemoteProcess *remote;
	const Region *region;
	uint64_t deadline_ns;
	bool later; /* the time was over */
} Look;

static bool overlaps(const MovedSuspect *suspect, uint64_t start, uint64_t end)
{
	return suspect->start < end && start < suspect->end;
}

static int claim(Look *look, const Text *text)
{
	int error = 0;

	log_verbose("process %u has the text of a file at 0x%" PRIx64 "-0x%" PRIx64,
		    look->process->ns_tgid, text->start, text->end);
	for (size_t i = 0; i < look->process->suspects.count && !error; i++) {
		const MovedSuspect *suspect = &look->process->suspects.items[i];

		if (overlaps(suspect, text->start, text->end))
			error = emit_mapping(look->files, look->process, suspect, text,
					     look->region);
	}
	return error;
}

static void wait_for(Look *look, const Text *text)
{
	for (size_t i = 0; i < look->process->suspects.count; i++) {
		MovedSuspect *suspect = &look->process->suspects.items[i];

		suspect->waits |= overlaps(suspect, text->start, text->end);
	}
}

static bool is_compared(const MovedProcess *process, const Text *text)
{
	for (size_t i = 0; i < process->compared.count; i++)
		if (process->compared.items[i].start == text->start &&
		    process->compared.items[i].file == text->file)
			return true;
	return false;
}

static void note_compared(MovedProcess *process, const Text *text, bool same)
{
	*vec_push(&process->compared) = (MovedText){text->start, text->file, same};
}

/* Compares the region with the text of the file that is mapped beside it. */
static int look_at_file(Look *look, const Region *beside)
{
	MappingSeen seen = {
		.ns = now_ns(),
		.ns_tgid = look->process->ns_tgid,
		.start = beside->start,
		.end = beside->end,
		.pgoff = beside->pgoff,
		.path = beside->path,
		.inode = beside->inode,
	};
	uint64_t bias;
	uint32_t id;
	FileView view;
	int error = mapped_files_get(look->files, &seen, &id);

	if (error)
		return error;
	view = mapped_files_view(look->files, id);
	if (view.fd < 0 || elf_mapping_bias(view.identity, beside->start,
					    beside->end - beside->start, beside->pgoff, &bias))
		return 0;
	for (size_t i = 0; i < view.identity->loads.count && !error && !look->later; i++) {
		Text text = {.file = id};

		if (!overlap(&view.identity->loads.items[i], bias, look->region, &text) ||
		    is_compared(look->process, &text))
			continue;
		switch (compare_text(look->process, look->remote, &text, view.fd,
				     look->deadline_ns)) {
		case TEXT_SAME:
			note_compared(look->process, &text, true);
			error = claim(look, &text);
			break;
		case TEXT_DIFFERENT:
			note_compared(look->process, &text, false);
			wait_for(look, &text);
			break;
		case TEXT_LATER:
			look->later = true;
			break;
		}
	}
	return error;
}

static const Region *region_at(const Regions *regions, uint32_t index)
{
	return index == NO_REGION ? NULL : &regions->items[index];
}

static int look_at_region(Look *look, const Regions *regions, const Region *region)
{
	const Region *before = region_at(regions, region->before);
	const Region *after = region_at(regions, region->after);
	int error = 0;

	look->region = region;
	if (before)
		error = look_at_file(look, before);
	if (after && !error && !look->later &&
	    !(before && before->inode == after->inode && !strcmp(before->path, after->path)))
		error = look_at_file(look, after);
	return error;
}

static bool is_suspect(const MovedProcess *process, const Region *region)
{
	for (size_t i = 0; i < process->suspects.count && region->exec; i++)
		if (overlaps(&process->suspects.items[i], region->start, region->end))
			return true;
	return false;
}

/* Keeps what may still become a copy. */
static void drop_suspects(MovedProcess *process)
{
	size_t kept = 0;

	for (size_t i = 0; i < process->suspects.count; i++) {
		MovedSuspect suspect = process->suspects.items[i];

		if (!suspect.waits || ++suspect.looks == LOOKS_MAX)
			continue;
		suspect.waits = false;
		process->suspects.items[kept++] = suspect;
	}
	process->suspects.count = kept;
	for (size_t i = kept = 0; i < process->compared.count; i++)
		if (process->compared.items[i].same && process->suspects.count)
			process->compared.items[kept++] = process->compared.items[i];
	process->compared.count = kept;
}

/*
 * Most executable memory without a file is code made at run time, which is mapped again and again.
 * The pauses keep what looking costs below a small share of the time.
 */
static void pause_process(MovedProcess *process)
{
	process->next_ns = now_ns() + MAX(process->pause_ns, 50 * process->took_ns);
	process->pause_ns = MIN(2 * process->pause_ns, LAST_PAUSE_NS);
	process->took_ns = 0;
}

/*
 * Reading the mappings again costs as much in each part of a look, and takes tens of milliseconds
 * if there are thousands of them. So as much time is given to comparing, and the pause depends on
 * it. Another program that has the CPU meanwhile does not count.
 */
static int check_process(MappedFiles *files, MovedProcess *process, uint64_t deadline_ns)
{
	_cleanup_(free_regions) Regions regions = {};
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), read_ns;
	pid_t tid = proc_living_thread(process->ns_tgid);
	int error = read_regions(tid, &regions);
	Look look = {.files = files, .process = process};

	if (!error)
		error = remote_memory_open(mapped_files_memory(files), tid, &look.remote);

	read_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	look.deadline_ns = MAX(deadline_ns, now_ns() + read_ns);
	if (error) { /* it has ended, or must not be looked at */
		process->suspects.count = 0;
		return 0;
	}
	for (size_t i = 0; i < regions.count && !error && !look.later; i++)
		if (is_suspect(process, &regions.items[i]))
			error = look_at_region(&look, &regions, &regions.items[i]);
	remote_memory_close(look.remote);
	process->took_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
	if (error)
		return error;
	if (look.later) {
		process->next_ns = now_ns() + MIN(50 * read_ns, LAST_PAUSE_NS);
		return 0;
	}
	drop_suspects(process);
	pause_process(process);
	return 0;
}

int moved_text_check(MappedFiles *files, uint64_t max_ns)
{
	MovedSuspects *moved = mapped_files_moved(files);
	uint64_t now = now_ns(), deadline_ns = now + max_ns;
	size_t kept = 0;
	int error = 0;

	if (now < moved->next_ns)
		return 0;
	moved->next_ns = UINT64_MAX;
	/* Those that are not looked at in this time come first in the next. */
	for (size_t left = moved->processes.count; left > 0 && !error; left--) {
		MovedProcess *process;

		if (now_ns() >= deadline_ns)
			break;
		moved->turn = (moved->turn + 1) % moved->processes.count;
		process = moved->processes.items[moved->turn];
		if (process->suspects.count && now >= process->next_ns)
			error = check_process(files, process, deadline_ns);
	}
	for (size_t i = 0; i < moved->processes.count; i++) {
		MovedProcess *process = moved->processes.items[i];

		/* A pause is remembered as long as it lasts. */
		if (!process->suspects.count && now >= process->next_ns + LAST_PAUSE_NS) {
			moved_process_free(process);
			continue;
		}
		moved->next_ns =
			MIN(moved->next_ns,
			    process->next_ns + (process->suspects.count ? 0 : LAST_PAUSE_NS));
		moved->processes.items[kept++] = process;
	}
	moved->processes.count = kept;
	return error;
}
