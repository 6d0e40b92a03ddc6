/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "folded.h"
#include "json_writer.h"
#include <ctype.h>

static void put_char(Output *out, char c)
{
	*output_reserve(out, 1) = c;
	out->used++;
}

/* Returns whether this is U+2028 or U+2029: JavaScript's regular expressions end a line there. */
static bool is_line_end(const char *name)
{
	return !strncmp(name, "\xe2\x80\xa8", 3) || !strncmp(name, "\xe2\x80\xa9", 3);
}

/* A semicolon would be the end of the frame, and a line feed that of the line. */
static void put_name(Output *out, const char *name)
{
	if (!*name)
		name = "unknown";
	for (; *name; name++) {
		if (is_line_end(name)) {
			put_char(out, ' ');
			name += 2;
		} else if (*name == ';') {
			put_char(out, ':');
		} else {
			put_char(out, iscntrl((unsigned char)*name) ? ' ' : *name);
		}
	}
}

static void put_line(Output *out, const StackTree *tree, const StackPath *path, uint64_t us)
{
	char *p;

	for (size_t i = 0; i < path->count; i++) {
		if (i > 0)
			put_char(out, ';');
		put_name(out, stack_tree_name(tree, path->items[i]));
	}
	put_char(out, ' ');
	p = json_format_u64(output_reserve(out, FORMAT_MAX), us);
	out->used = p - out->buffer;
	put_char(out, '\n');
}

int folded_write(Output *out, const Timeline *timeline, Frames *frames,
		 const FoldedOptions *options)
{
	StackTable *tables = stack_table_new(timeline, frames);
	StackPath path = {};
	StackTree tree;
	uint64_t ns = 0;

	stack_tree_init(&tree, tables, options ? options->root : STACK_TREE_BY_THREAD,
			options ? options->hidden : 0);
	for (uint32_t i = 0; i < tree.nodes.count; i++) {
		ns += tree.nodes.items[i].self_ns;
		if (ns < NSEC_PER_USEC || tree.nodes.items[i].self_ns == 0)
			continue;
		stack_tree_path(&tree, i, &path);
		put_line(out, &tree, &path, ns / NSEC_PER_USEC);
		ns %= NSEC_PER_USEC;
	}
	vec_free(&path);
	stack_tree_free(&tree);
	stack_table_free(tables);
	output_flush(out);
	return out->error;
}
