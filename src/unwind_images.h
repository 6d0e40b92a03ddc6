/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind_images.h - the executable mappings of every process that is recorded, as they are now.
 *
 * An image is what one exec (or the birth) of a process made; fork copies it. It is followed by
 * records: BPF's tell births, execs and exits with the numbers that BPF itself will compare
 * (process number, start, count of execs), perf's side-band tells what was mapped. The two come in
 * any order within a round, so an image stays for a while after its end.
 */
#ifndef WALLPROF_UNWIND_IMAGES_H
#define WALLPROF_UNWIND_IMAGES_H

#include "records.h"
#include "util.h"

typedef struct ImageMapping {
	uint64_t start, last; /* AVMA */
	uint64_t bias;	      /* AVMA - SVMA */
	uint64_t from_ns;     /* 0 = before the recording */
	uint32_t file;	      /* FILE id */
	bool awaits;	      /* seen being mapped, and not yet published with a table */
} ImageMapping;

typedef struct Image {
	uint32_t ns_tgid;
	uint32_t tgid;	  /* 0 = not known yet, with the next two */
	uint32_t exec_id; /* not known: execs since the first record */
	uint64_t start_boottime;
	uint64_t told_ns;	    /* when BPF asked for these three */
	uint64_t begun_ns;	    /* by an exec then; 0 = otherwise */
	uint32_t exec_told;	    /* BPF's word of the process's last exec: its exec_id, and */
	uint64_t exec_told_ns;	    /* when; 0 = none yet */
	VEC(ImageMapping) mappings; /* by address; none overlap */
	uint64_t latest_ns;	    /* of the side-band's records that it was made from */
	bool changed;		    /* since it was published */
	uint64_t ended_ns; /* 0 = it is there; else exit, exec or another with its number */
	/* The publisher's: where its run lies. */
	uint32_t cell, count;
	bool published;
} Image;

typedef struct Images {
	VEC(Image *) list;
	Map current; /* ns_tgid -> list */
	Map by_tgid; /* tgid -> ns_tgid */
} Images;

void images_free(Images *images);

/*
 * Takes TASK, EXEC, EXIT, SPACE and MAPPING records; others are ignored. now_ns tells how long
 * ended images have ended.
 */
void images_take(Images *images, const struct record *record, uint64_t now_ns);

/* The image of that number; NULL if none is known. */
Image *images_find(const Images *images, uint32_t tgid, uint64_t start_boottime, uint32_t exec_id);

/*
 * May what is known of it be published? Of an image that an exec began not before BPF has told of
 * that exec, for until then the registers are the old program's, and BPF will publish what it
 * knows itself; or 100 ms later, if that word was lost.
 */
bool image_has_begun(const Image *image, uint64_t now_ns);

/*
 * Images of which BPF tells an exec that the side-band should have told before known_ns: what is
 * mapped in them is not known. Returns how many there were.
 */
size_t images_correct(Images *images, uint64_t known_ns);

/* The mapping that holds avma, or NULL. */
const ImageMapping *image_find(const Image *image, uint64_t avma);

/*
 * Frees images that ended before ns, after forget() (may be NULL) was told.
 */
void images_drop_ended(Images *images, uint64_t ns, void (*forget)(void *user, Image *image),
		       void *user);

#endif
