/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images.h - the executable mappings of every process that is recorded, as they are now.
 *
 * An image is what one exec (or the birth) of a process made; fork copies it. It is followed by
 * records: BPF's tell births, execs and exits with the numbers that BPF itself will compare
 * (process number, start, count of execs), perf's side-band tells what was mapped, in the order of
 * time. The two come in any order within a round, so an image stays for a while after its end.
 *
 * A process may map tens of thousands of things one after another. So what is mapped is put
 * by, and worked in once for all of a round: O(n log n) for n mappings, not each time O(n).
 */
#ifndef WALLPROF_IMAGES_H
#define WALLPROF_IMAGES_H

#include "records.h"
#include "table_memory.h"
#include "util.h"

typedef struct ImageMapping {
	uint64_t start, last; /* AVMA */
	uint64_t bias;	      /* AVMA - SVMA */
	uint64_t pgoff;	      /* of start in the file, bytes */
	uint64_t from_ns;     /* 0 = before the recording */
	uint64_t reported_ns; /* by the last record that told it */
	uint64_t covered_ns;  /* the youngest that it was laid over is of then */
	uint32_t file;	      /* FILE id */
	bool unpublished;     /* seen being mapped, and not yet published with a table */
	bool hides;	      /* something else that was mapped since it was last worked in */
} ImageMapping;

typedef VEC(ImageMapping) ImageMappings;

typedef struct Image {
	uint32_t ns_tgid;
	uint32_t tgid;	  /* 0 = not known yet, with the next two */
	uint32_t exec_id; /* not known: execs since the first record */
	uint64_t start_boottime;
	uint64_t reported_ns; /* when BPF asked for these three */
	uint64_t begun_ns;    /* by an exec then; 0 = otherwise */
	uint64_t created_ns;  /* by an exec or a fork then, as the side-band tells; 0 = not told */
	uint32_t bpf_exec_id; /* BPF's word of the process's last exec: its exec_id, and */
	uint64_t bpf_exec_ns; /* when; 0 = none yet */
	ImageMappings mappings;	     /* by address; none overlap */
	ImageMappings pending;	     /* mapped since images_apply_pending(), in that order */
	bool counted;		     /* mappings are among Images::uses */
	uint64_t latest_ns;	     /* of the side-band's records that it was made from */
	uint64_t uncertain_since_ns; /* what was mapped since then was told in part only; 0 = all
					was */
	bool changed;		     /* since it was published */
	uint64_t ended_ns; /* 0 = it is there; else exit, exec or another with its number */
	/* The publisher's: where its run lies. */
	RunHandle run;
	bool published;
	bool failed;	/* there was no room for it, */
	uint64_t tried; /* when so much had been released */
} Image;

typedef struct Images {
	VEC(Image *) list;
	Map current;			   /* ns_tgid -> list */
	Map by_tgid;			   /* tgid -> ns_tgid */
	VEC(uint32_t) uses;		   /* by FILE id: mappings in images that have not ended */
	uint64_t loss_from_ns, loss_to_ns; /* of the last loss of mappings */
	/*
	 * What a reading found that nobody had told, as mapped at the earliest time that is
	 * possible: just after the doubt began, or what it lies over was mapped. For who keeps the
	 * history; images count it from the reading.
	 */
	VEC(struct rec_mapping) found;
} Images;

void images_free(Images *images);

/*
 * Takes TASK, EXEC, EXIT, SPACE and MAPPING records, and the LOSS of such; others are ignored.
 * now_ns tells how long ended images have ended.
 */
void images_on_record(Images *images, const struct record *record, uint64_t now_ns);

/* Works in what was mapped since the last time. What follows is about that. */
void images_apply_pending(Images *images);

/* Does an image that has not ended map the file? */
bool images_use_file(const Images *images, uint32_t file);

/* The image of that number; NULL if none is known. */
Image *images_find(const Images *images, uint32_t tgid, uint64_t start_boottime, uint32_t exec_id);

/*
 * May what is known of it be published? Not before the side-band has told all that is older than
 * BPF's word of its birth, the fork among it, for BPF has made an entry then. Of an image that an
 * exec began not before BPF has told of that exec, for until then the registers are the old
 * program's, and BPF will publish what it knows itself; or 100 ms later, if that word was lost. Nor
 * if BPF has told of an exec that came after it.
 */
bool image_is_ready(const Image *image, uint64_t watermark_ns, uint64_t now_ns);

/*
 * Images of which BPF tells an exec that the side-band should have told before watermark_ns: what
 * is mapped in them is not known. corrected() is told of each.
 */
void images_correct(Images *images, uint64_t watermark_ns,
		    void (*corrected)(void *user, const Image *image), void *user);

/* The mapping that holds avma, or NULL. */
const ImageMapping *image_find(const Image *image, uint64_t avma);

/*
 * Frees images that ended before ns, after forget() (may be NULL) was told.
 */
void images_drop_ended(Images *images, uint64_t ns, void (*forget)(void *user, Image *image),
		       void *user);

#endif
