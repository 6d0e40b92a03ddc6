/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images.h - the executable mappings of every recorded process, as they are now.
 *
 * An image is what one exec (or the birth) of a process made; fork copies it. It is made from
 * records: BPF's report births, execs and exits with the numbers that BPF itself will compare
 * (process id, start, count of execs); perf's side-band reports what was mapped, in the order of
 * time. The two come in any order within a round, so an image is kept for a while after its end.
 *
 * A process may map tens of thousands of things one after another. So new mappings are first
 * collected, and applied once per round: O(n log n) for n mappings, instead of O(n) for each.
 */
#ifndef WALLPROF_IMAGES_H
#define WALLPROF_IMAGES_H

#include "process_table.h"
#include "records.h"
#include "table_memory.h"
#include "util.h"

typedef struct ImageMapping {
	uint64_t start, last; /* AVMA */
	uint64_t bias;	      /* AVMA - SVMA */
	uint64_t pgoff;	      /* of start in the file, bytes */
	uint64_t from_ns;     /* 0 = mapped before the recording */
	uint64_t reported_ns; /* time of the last record that reported it */
	uint64_t covered_ns;  /* time of the youngest mapping that it was laid over */
	uint32_t file;	      /* FILE id */
	bool unpublished;     /* reported by mmap, and not yet published with a table */
	bool hides;	      /* it replaced something else since images_apply_pending() */
} ImageMapping;

typedef VEC(ImageMapping) ImageMappings;

/* What was mapped there before, for copies of stacks that were taken then. */
typedef struct PastMapping {
	ImageMapping mapping;
	uint64_t to_ns; /* not included */
} PastMapping;

typedef VEC(PastMapping) PastMappings;

typedef struct Image {
	uint32_t ns_tgid;
	uint32_t tgid;	  /* 0 = this and the next two are not known yet */
	uint32_t exec_id; /* if not known: the number of execs since the first record */
	uint64_t start_boottime;
	uint64_t reported_ns;	/* when BPF read these three */
	uint64_t begun_ns;	/* time of the exec that began it; 0 = it began otherwise */
	uint64_t created_ns;	/* time of the exec or fork that began it, by the side-band; 0 = not
				   reported */
	uint32_t bpf_exec_id;	/* the process's last exec that BPF has reported: its exec_id, */
	uint64_t bpf_exec_ns;	/* and its time; 0 = none yet */
	ImageMappings mappings; /* sorted by address; none overlap */
	ImageMappings pending;	/* mapped since images_apply_pending(), in that order */
	PastMappings past;	/* in the order in which they were replaced, or found out */
	bool counted;		/* its mappings are counted in Images::uses */
	uint64_t latest_ns;	/* time of the youngest side-band record that it was made from */
	uint64_t uncertain_since_ns; /* what was mapped since then is not known completely; 0 = all
					is known */
	bool changed;		     /* changed since it was published */
	uint64_t ended_ns; /* 0 = it has not ended; else the time of its exit or exec, or of a new
			      process with its id */
	/* The publisher's: where the image's mappings are in TableMemory. */
	RunHandle run;
	bool published;
	bool failed;	/* there was no room for it, */
	uint64_t tried; /* when this much had been released */
} Image;

typedef struct Images {
	const ProcessTable *processes; /* not owned */
	VEC(Image *) list;
	Map current;	    /* ns_tgid -> list */
	VEC(uint32_t) uses; /* by FILE id: the number of mappings in images that have not ended */
	uint64_t loss_from_ns, loss_to_ns; /* the last loss of mapping records */
	/*
	 * Mappings that a reading of /proc found and no record had reported, with the earliest time
	 * that they can have: just after the mappings became uncertain, or after the mapping below
	 * them. They are for the history in the capture; images count such a mapping from the
	 * reading on.
	 */
	VEC(struct rec_mapping) found;
} Images;

void images_free(Images *images);

/*
 * Uses TASK, EXEC, EXIT, SPACE and MAPPING records, and LOSS records of those; ignores others.
 * now_ns is the time from which the age of ended images is counted.
 */
void images_on_record(Images *images, const struct record *record, uint64_t now_ns);

/* Applies what was mapped since the last call. The functions below see only what is applied. */
void images_apply_pending(Images *images);

/* Has the present image of a process published again. */
void images_mark_changed(Images *images, uint32_t ns_tgid);

/* Returns whether an image that has not ended maps the file. */
bool images_use_file(const Images *images, uint32_t file);

/* Returns the image with these numbers; NULL if none is known. */
Image *images_find(const Images *images, uint32_t tgid, uint64_t start_boottime, uint32_t exec_id);

/*
 * Returns whether the image may be published. The side-band must have reported all that is older
 * than BPF's report of the process's birth, the fork included, because BPF has made an entry then.
 * An image that an exec began must wait for BPF's report of that exec: until then the registers are
 * those of the old program, and BPF will publish what it knows itself. If that report was lost, the
 * image is ready 100 ms later. An image is never ready if BPF has reported a later exec.
 */
bool image_is_ready(const Image *image, uint64_t watermark_ns, uint64_t now_ns);

/*
 * Finds the images for which BPF has reported an exec that the side-band should have reported
 * before watermark_ns: their mappings are not known. Calls corrected() for each.
 */
void images_correct(Images *images, uint64_t watermark_ns,
		    void (*corrected)(void *user, const Image *image), void *user);

/* Returns the mapping that holds avma, or NULL. */
const ImageMapping *image_find(const Image *image, uint64_t avma);

/*
 * Returns the mapping that held avma at that time, or NULL: it was something else, or that is not
 * known any more. What was replaced is kept for IMAGES_PAST_NS.
 */
const ImageMapping *image_find_at(const Image *image, uint64_t avma, uint64_t ns);
#define IMAGES_PAST_NS (5 * NSEC_PER_SEC)

/* Frees images that ended before ns, after calling forget() (may be NULL) for each. */
void images_drop_ended(Images *images, uint64_t ns, void (*forget)(void *user, Image *image),
		       void *user);

#endif
