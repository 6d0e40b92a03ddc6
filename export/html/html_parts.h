/* SPDX-License-Identifier: GPL-2.0-or-later */
/* html_parts.h - the parts of the writer that have files of their own; html.c calls them. */
#ifndef WALLPROF_HTML_PARTS_H
#define WALLPROF_HTML_PARTS_H

#include "cpu_rows.h"
#include "output.h"
#include "sample_rows.h"
#include "tracks.h"

/* The files of the page: embed.py makes them. */
extern const unsigned char html_policy[], html_style[], html_script[], html_body[];
extern const size_t html_policy_size, html_style_size, html_script_size, html_body_size;

typedef VEC(uint8_t) Bytes;

/* A column of numbers, each as LEB128 (7 bits in a byte, the lowest first). */
enum html_column {
	COLUMN_SEGMENT_START, /* ns since the segment before, of a track's first: since its start */
	COLUMN_SEGMENT_WEIGHT, /* ns, less the time until the next segment; zigzag */
	COLUMN_SEGMENT_STACK,  /* stack_prefix, stack_frame */
	COLUMN_STACK_PREFIX,   /* the stack without its leaf, plus 1; 0: it has one frame */
	COLUMN_STACK_FRAME,
	COLUMN_FRAME_FUNC,
	COLUMN_FRAME_LINE, /* 0: unknown */
	COLUMN_FRAME_CATEGORY,
	COLUMN_FUNC_NAME,	  /* strings */
	COLUMN_FUNC_LIB,	  /* strings, plus 1; 0: none */
	COLUMN_FUNC_SOURCE,	  /* sources, plus 1; 0: unknown */
	COLUMN_PATH_START,	  /* ns since the end of the stretch before */
	COLUMN_PATH_LENGTH,	  /* ns */
	COLUMN_PATH_OWNER,	  /* threads; of a device's stretch it is the submitter */
	COLUMN_PATH_NAME,	  /* strings */
	COLUMN_WAIT_THREAD,	  /* threads */
	COLUMN_WAIT_START,	  /* ns since the thread's start */
	COLUMN_WAIT_LENGTH,	  /* ns */
	COLUMN_WAIT_OBJECT,	  /* strings, plus 1; 0: none */
	COLUMN_WAIT_WAKER,	  /* strings, plus 1; 0: unknown */
	COLUMN_WAIT_WAKER_THREAD, /* threads, plus 1; 0: it is not one of them */
	COLUMN_WAIT_HOLDER,	  /* strings, plus 1; 0: none */
	COLUMN_WAIT_CHAIN, /* strings, plus 1: from where the waker ended it; 0: not recorded */
	COLUMN_COUNT,
};

typedef struct HtmlSegment {
	uint64_t ns, weight_ns;
	uint32_t stack;
} HtmlSegment;

/* What the page shows, before it is packed. */
typedef struct HtmlData {
	const Timeline *timeline;
	Frames *frames;
	StackTable *tables;
	Tracks tracks;
	RowPlan rows;
	CpuPlan cpus;
	Bytes columns[COLUMN_COUNT];
	/* Of each thread, then of the path if there is one, then of each CPU. */
	VEC(uint32_t) segment_counts;
	VEC(HtmlSegment) segments; /* of the track that is being written */
	VEC(uint32_t) stack_of;	   /* stacks of the tables -> stacks of the file, or MAP_NONE */
	Map stack_index;	   /* (prefix, frame) -> stack of the file */
	Map frame_index;	   /* (func, line, category) -> frame of the file */
	Map func_index;		   /* funcs of the tables -> funcs of the file */
	uint32_t stacks, frame_count, funcs;
	uint64_t waits, waits_with_details, least_wait_ns; /* shorter ones have no details */
} HtmlData;

/* How much is shown; see HtmlOptions. */
typedef struct HtmlPlan {
	uint32_t hidden;
	uint64_t rows, waits;
} HtmlPlan;

/* html_columns.c: fills the columns and what counts them. */
void html_columns_make(HtmlData *data, const HtmlPlan *plan);
void html_columns_free(HtmlData *data);

/*
 * html_data.c: returns the data as the page reads them: the length of a JSON text (4 bytes, the
 * lowest first), the text, and the columns; the text has their places. The caller frees it.
 * Returns a negative errno if there is no memory for the report.
 */
int html_data_make(const Timeline *timeline, Frames *frames, const HtmlPlan *plan, Bytes *ret_data);

/*
 * html_packed.c: replaces the data by their gzip, and writes such data as base64. The former
 * returns 0 or a negative errno.
 */
int html_packed_make(Bytes *data);
void html_packed_write(Output *output, const Bytes *packed);

#endif
