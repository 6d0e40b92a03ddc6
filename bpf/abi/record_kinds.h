/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record_kinds.h - the table of all kinds of records. Only records.h includes it.
 *
 * A kind is a row here and a struct in records.h. The capture's reader refuses a record that is
 * shorter than its row says, sorts events by time, and skips kinds that have no row; losses are
 * counted and shown under the row's word. docs/reference/capture-format.md describes each kind.
 */
#ifndef WALLPROF_RECORD_KINDS_H
#define WALLPROF_RECORD_KINDS_H

enum record_kind_flags {
	/*
	 * An event: it has a position in time, and the reader returns events in order of time. The
	 * others are definitions, which are valid wherever they are in the file.
	 */
	RECORD_EVENT = 1 << 0,
	/* No later record refers to it, so the flight recorder drops it when it is too old. */
	RECORD_DROPPABLE = 1 << 1,
};

/*
 * KIND(NAME, number, word, flags, length): REC_NAME; the word for it in reports; enum
 * record_kind_flags; the bytes that every such record has, without optional parts and tails, or 0
 * if the kind is only for the recorder and never in a capture.
 *
 * The number shows the origin of a record: below REC_BULK_MIN it is from BPF, in the ring buffer
 * that must not lose records; below REC_BPF_MAX from BPF, in the ring buffers for other records;
 * others are from the recorder. Numbers are part of the file format and are never reused.
 */
#define RECORD_KINDS(KIND)                                                                         \
	KIND(SWITCH, 1, "switch", RECORD_EVENT | RECORD_DROPPABLE, SWITCH_SHORT_LEN)               \
	KIND(WAKING, 2, "waking", RECORD_EVENT | RECORD_DROPPABLE, WAKING_SHORT_LEN)               \
	KIND(TASK, 3, "task", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_task))            \
	KIND(EXEC, 4, "exec", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_exec))            \
	KIND(EXIT, 5, "exit", RECORD_EVENT | RECORD_DROPPABLE,                                     \
	     offsetof(struct rec_exit, start_boottime))                                            \
	KIND(STATS, 6, "stats", RECORD_EVENT | RECORD_DROPPABLE,                                   \
	     offsetof(struct rec_stats, read_bytes))                                               \
	KIND(SNAPSHOT, 7, "snapshot", RECORD_EVENT | RECORD_DROPPABLE, SNAPSHOT_SHORT_LEN)         \
                                                                                                   \
	KIND(SAMPLE, 16, "sample", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_sample))     \
	KIND(STACK, 17, "stack", 0, sizeof(struct rec_stack))                                      \
	KIND(STACK_COPY, 18, "stack copy", 0, 0)                                                   \
	KIND(FAULT, 19, "page fault", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_fault))   \
	KIND(INODE, 20, "file name", RECORD_EVENT, offsetof(struct rec_inode, text))               \
	KIND(REQUEST, 21, "request", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_request))  \
	KIND(SOCKET, 22, "socket", RECORD_EVENT, offsetof(struct rec_socket, text))                \
	KIND(WATCH, 23, "epoll list", RECORD_EVENT, offsetof(struct rec_watch, watched))           \
	KIND(FUTEX, 24, "futex", RECORD_EVENT, sizeof(struct rec_futex))                           \
	KIND(ARGS, 25, "arguments", RECORD_EVENT | RECORD_DROPPABLE,                               \
	     offsetof(struct rec_args, text))                                                      \
	KIND(SCRIPT, 26, "script frames", RECORD_EVENT | RECORD_DROPPABLE,                         \
	     sizeof(struct rec_script))                                                            \
	KIND(SCRIPT_STACK, 27, "script stack", 0, sizeof(struct rec_script_stack))                 \
	KIND(SCRIPT_CODE, 28, "script function", 0, sizeof(struct rec_script_code))                \
                                                                                                   \
	KIND(META, 33, "metadata", 0, sizeof(struct rec_meta))                                     \
	KIND(WINDOW, 34, "window", 0, sizeof(struct rec_window))                                   \
	KIND(WATERMARK, 35, "watermark", RECORD_DROPPABLE, sizeof(struct rec_watermark))           \
	KIND(FILE, 36, "file", 0, offsetof(struct rec_file, path))                                 \
	KIND(MAPPING, 37, "mapping", RECORD_EVENT, sizeof(struct rec_mapping))                     \
	KIND(SPACE, 38, "address space", RECORD_EVENT, sizeof(struct rec_space))                   \
	KIND(SYMBOL, 39, "symbol", 0, offsetof(struct rec_symbol, text))                           \
	KIND(LOSS, 40, "loss", RECORD_EVENT | RECORD_DROPPABLE, sizeof(struct rec_loss))           \
	KIND(TOTAL, 41, "total", 0, sizeof(struct rec_total))                                      \
	KIND(END, 42, "end", 0, sizeof(struct rec_end))                                            \
	KIND(CODE, 43, "code", 0, sizeof(struct rec_code))                                         \
	KIND(SOURCE, 44, "source text", 0, offsetof(struct rec_source, data))                      \
	KIND(NOTE, 45, "note", 0, offsetof(struct rec_note, text))                                 \
	KIND(DEVICE, 46, "device", 0, offsetof(struct rec_device, text))

#define REC_BULK_MIN 16
#define REC_BPF_MAX  32

enum record_kind {
	REC_NONE = 0,
#define KIND(name, number, word, flags, length) REC_##name = number,
	RECORD_KINDS(KIND)
#undef KIND
};

#endif
