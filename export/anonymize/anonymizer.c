/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anonymizer.h"
#include "anon_addresses.h"
#include "anon_meta.h"
#include "anon_texts.h"
#include "script_text.h"
#include "symbol_record.h"
#include <fnmatch.h>
#include <sys/socket.h>

struct Anonymizer {
	AnonNames names;
	VEC(uint8_t) bytes; /* the record that was returned last */
	SymbolRecord symbol;
	VEC(char *) file_paths; /* rec_file::id -> what stands for its path; NULL: not known */
	Strings threads;	/* true names that --process and --thread select by */
	Strings kernel_names;	/* the same of kernel threads */
	Strings functions, system_files, kernel_threads; /* what was kept */
	AnonymizerCounts dropped;
};

Anonymizer *anonymizer_new(void)
{
	Anonymizer *anonymizer = xcalloc(1, sizeof(*anonymizer));

	anonymizer->names.is_learning = true;
	return anonymizer;
}

void anonymizer_free(Anonymizer *anonymizer)
{
	anon_names_free(&anonymizer->names);
	vec_free(&anonymizer->bytes);
	symbol_record_free(&anonymizer->symbol);
	for (size_t i = 0; i < anonymizer->file_paths.count; i++)
		free(anonymizer->file_paths.items[i]);
	vec_free(&anonymizer->file_paths);
	strings_free(&anonymizer->threads);
	strings_free(&anonymizer->kernel_names);
	strings_free(&anonymizer->functions);
	strings_free(&anonymizer->system_files);
	strings_free(&anonymizer->kernel_threads);
	free(anonymizer);
}

/* ---- making records ------------------------------------------------------------------------ */

/* Begins a record with the first bytes of another one. */
static void begin(Anonymizer *anonymizer, const struct record *record, size_t size)
{
	anonymizer->bytes.count = 0;
	vec_append(&anonymizer->bytes, (const uint8_t *)record, size);
}

/* Returns the record with a tail. */
static const struct record *finish(Anonymizer *anonymizer, const char *tail, size_t size)
{
	static const uint8_t zeros[8];
	struct record *record;

	vec_append(&anonymizer->bytes, (const uint8_t *)tail, size);
	vec_append(&anonymizer->bytes, zeros, -anonymizer->bytes.count & 7);
	record = (struct record *)anonymizer->bytes.items;
	record->len = anonymizer->bytes.count;
	return record;
}

/* Returns a copy of the record, which may be changed. */
static void *copy_of(Anonymizer *anonymizer, const struct record *record)
{
	begin(anonymizer, record, record->len);
	return anonymizer->bytes.items;
}

/* Returns what stands for a path, and counts it if it is kept. The caller frees it. */
static char *replace_path(Anonymizer *anonymizer, const char *path)
{
	char *other = anon_paths_replace(&anonymizer->names, path);

	if (!anonymizer->names.is_learning && *path == '/' && !strcmp(path, other))
		strings_intern(&anonymizer->system_files, path);
	return other;
}

/* ---- one function for each kind that has names --------------------------------------------- */

static const struct record *keep(Anonymizer *anonymizer, const struct record *record)
{
	(void)anonymizer;
	return record;
}

static void replace_comm(Anonymizer *anonymizer, char comm[COMM_LEN], bool is_kernel)
{
	_cleanup_free_ char *other = NULL;

	if (anonymizer->names.is_learning)
		strings_intern(is_kernel ? &anonymizer->kernel_names : &anonymizer->threads, comm);
	other = is_kernel ? anon_names_kernel_comm(&anonymizer->names, comm)
			  : anon_names_comm(&anonymizer->names, comm);
	if (is_kernel && !anonymizer->names.is_learning && !strcmp(other, comm))
		strings_intern(&anonymizer->kernel_threads, comm);
	memset(comm, 0, COMM_LEN);
	memcpy(comm, other, strnlen(other, COMM_LEN - 1));
}

static const struct record *replace_task(Anonymizer *anonymizer, const struct record *record)
{
	struct rec_task *task = copy_of(anonymizer, record);

	replace_comm(anonymizer, task->comm, record->flags & TASK_KTHREAD);
	return &task->h;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static const struct record *replace_exec(Anonymizer *anonymizer, const struct record *record)
{
	struct rec_exec *exec = copy_of(anonymizer, record);
	_cleanup_free_ char *path = replace_path(anonymizer, exec->path);

	if (anonymizer->names.is_learning)
		strings_intern(&anonymizer->threads, base_name(exec->path));
	replace_comm(anonymizer, exec->comm, /* is_kernel= */ false);
	memset(exec->path, 0, sizeof(exec->path));
	if (strlen(path) >= sizeof(exec->path)) {
		char *last = xasprintf("…/%s", base_name(path));

		free(path);
		path = last;
	}
	memcpy(exec->path, path, strnlen(path, sizeof(exec->path) - 1));
	return &exec->h;
}

static const struct record *replace_args(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_args *args = (const struct rec_args *)record;
	AnonText text = {};
	struct rec_args *other;
	uint16_t size;

	anon_texts_args(&anonymizer->names, args->text, args->size, &text);
	size = MIN(text.count, UINT16_MAX);
	begin(anonymizer, record, offsetof(struct rec_args, text));
	other = (struct rec_args *)finish(anonymizer, text.items, size);
	other->size = size;
	/* What was not recorded is missing still. */
	if (args->total)
		other->total = size + (args->total > args->size || size < text.count);
	vec_free(&text);
	return &other->h;
}

/* Appends a string with its NUL. */
static void append_string(AnonText *text, const char *string)
{
	vec_append(text, string, strlen(string) + 1);
}

/* Returns "usr/lib/libx.so" of "libx.so", "lib", "usr", each with a NUL. The caller frees it. */
static char *join_parts(const char *text, size_t size)
{
	char *path = xcalloc(1, size + 1), *to = path;

	while (size > 0) {
		size_t begin = --size; /* at the NUL behind the part */

		while (begin > 0 && text[begin - 1])
			begin--;
		to = mempcpy(to, text + begin, size - begin);
		if (begin > 0)
			*to++ = '/';
		size = begin;
	}
	return path;
}

/* Appends the parts of a path that join_parts() has made; a full path begins with a slash. */
static void append_parts(AnonText *text, const char *path, bool is_full)
{
	size_t end = strlen(path);

	for (size_t begin = end;; begin--) {
		if (begin > 0 && path[begin - 1] != '/')
			continue;
		if (begin == 0 && is_full)
			break;
		vec_append(text, path + begin, end - begin);
		*vec_push(text) = '\0';
		if (begin == 0)
			break;
		end = begin - 1;
	}
}

/*
 * The text is the parts of a path, the last one first. If its first folder is not that of the
 * system's root, no part of it is known by its place.
 */
static const struct record *replace_inode(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_inode *inode = (const struct rec_inode *)record;
	_cleanup_free_ char *parts = NULL, *path = NULL, *other = NULL;
	bool has_path = !(record->flags & INODE_NO_PATH);
	bool is_full = has_path && record->flags & INODE_FULL_PATH;
	struct rec_inode *made;
	AnonText text = {};

	if (inode->size == 0)
		return record;
	parts = has_path ? join_parts(inode->text, inode->size)
			 : xstrndup(inode->text, inode->size);
	path = xasprintf("%s%s", is_full ? "/" : "", parts);
	other = has_path ? replace_path(anonymizer, path)
			 : anon_paths_object(&anonymizer->names, path);
	if (has_path)
		append_parts(&text, other, is_full);
	else
		append_string(&text, other);
	begin(anonymizer, record, offsetof(struct rec_inode, text));
	made = (struct rec_inode *)finish(anonymizer, text.items, MIN(text.count, UINT16_MAX));
	made->size = MIN(text.count, UINT16_MAX);
	vec_free(&text);
	return &made->h;
}

/* Returns what stands for a name in the abstract namespace, as ss prints it: with an @ for a NUL.
 */
static char *replace_abstract(Anonymizer *anonymizer, const char *name, size_t size)
{
	_cleanup_free_ char *word = xcalloc(1, size + 1), *other = NULL;

	for (size_t i = 0; i < size; i++)
		word[i] = name[i] ? name[i] : '@';
	other = anon_names_word(&anonymizer->names, word, ANON_SOCKET);
	return xasprintf("@%s", other);
}

static const struct record *replace_socket(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_socket *socket = (const struct rec_socket *)record;
	_cleanup_free_ char *name = NULL;
	struct rec_socket *other;
	size_t size;

	if (socket->family == AF_UNIX && socket->size > 0) {
		_cleanup_free_ char *path = xstrndup(socket->text, socket->size);

		name = record->flags & SOCKET_ABSTRACT
			       ? replace_abstract(anonymizer, socket->text, socket->size)
			       : replace_path(anonymizer, path);
	}
	size = name ? MIN(strlen(name), UINT16_MAX) : 0;
	begin(anonymizer, record, offsetof(struct rec_socket, text));
	other = (struct rec_socket *)finish(anonymizer, name, size);
	other->size = size;
	if (socket->family == AF_INET || socket->family == AF_INET6) {
		anon_addresses_replace(&anonymizer->names, socket->family, other->local);
		anon_addresses_replace(&anonymizer->names, socket->family, other->remote);
	} else {
		memset(other->local, 0, sizeof(other->local));
		memset(other->remote, 0, sizeof(other->remote));
	}
	return &other->h;
}

/*
 * Writes a text into a record of a fixed size, of ASCII only, because it has one byte for a
 * character there. Returns how many bytes it has.
 */
static uint16_t write_ascii(char *place, size_t size, const char *text)
{
	size_t length = MIN(strlen(text), size);

	memset(place, 0, size);
	for (size_t i = 0; i < length; i++)
		place[i] = (uint8_t)text[i] < 0x80 ? text[i] : '?';
	return length;
}

/* Functions of files that keep their names are the system's, and so are their names. */
static const struct record *replace_script_code(Anonymizer *anonymizer, const struct record *record)
{
	struct rec_script_code *code = copy_of(anonymizer, record);
	_cleanup_free_ char *path =
		script_text(code->path, code->path_bytes, sizeof(code->path), code->path_kind);
	_cleanup_free_ char *other = path ? replace_path(anonymizer, path) : NULL;
	_cleanup_free_ char *name =
		script_text(code->name, code->name_bytes, sizeof(code->name), code->name_kind);
	_cleanup_free_ char *function =
		name ? anon_texts_script_function(&anonymizer->names, name) : NULL;

	if (path && !strcmp(path, other)) {
		if (name && !anonymizer->names.is_learning)
			strings_intern(&anonymizer->functions, name);
		return record;
	}
	if (function && !anonymizer->names.is_learning)
		strings_intern(&anonymizer->functions, function);
	code->path_bytes = write_ascii((char *)code->path, sizeof(code->path), other ? other : "");
	code->path_kind = other ? 1 : 0;
	if (function && strcmp(function, name) != 0) {
		code->name_bytes = write_ascii((char *)code->name, sizeof(code->name), function);
		code->name_kind = 1;
	}
	return &code->h;
}

/* The build ID of a file identifies it for all who have the same file. */
static const struct record *replace_file(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_file *file = (const struct rec_file *)record;
	char *path = replace_path(anonymizer, file->path);
	struct rec_file *other;

	begin(anonymizer, record, offsetof(struct rec_file, path));
	other = (struct rec_file *)finish(anonymizer, path, strlen(path) + 1);
	if (strcmp(path, file->path) != 0) {
		anonymizer->dropped.build_ids += file->build_id_len > 0;
		other->build_id_len = 0;
		memset(other->build_id, 0, sizeof(other->build_id));
	}
	/* Ids are at most CAPTURE's 1,048,576; a damaged file may have others. */
	if (!anonymizer->names.is_learning && file->id < 1U << 20) {
		while (anonymizer->file_paths.count <= file->id)
			*vec_push(&anonymizer->file_paths) = NULL;
		free(anonymizer->file_paths.items[file->id]);
		anonymizer->file_paths.items[file->id] = take_pointer(path);
	}
	free(path);
	return &other->h;
}

static const struct record *replace_symbol(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_symbol *symbol = (const struct rec_symbol *)record;
	const char *at = symbol->text;
	struct rec_symbol *other;

	symbol_record_begin(&anonymizer->symbol, symbol->address);
	for (uint32_t i = 0; i < symbol->count; i++) {
		const char *name = at + sizeof(u32), *source = name + strlen(name) + 1;
		_cleanup_free_ char *function = anon_texts_function(&anonymizer->names, name);
		_cleanup_free_ char *path = anon_paths_replace(&anonymizer->names, source);
		u32 line;

		memcpy(&line, at, sizeof(line));
		symbol_record_add(&anonymizer->symbol, function, path, line);
		if (!anonymizer->names.is_learning)
			strings_intern(&anonymizer->functions, function);
		at = source + strlen(source) + 1;
	}
	other = symbol_record_finish(&anonymizer->symbol,
				     symbol->lib ? symbol->text + symbol->lib : NULL);
	other->h = (struct record){.len = other->h.len,
				   .kind = REC_SYMBOL,
				   .flags = record->flags,
				   .cpu = record->cpu,
				   .ns = record->ns};
	other->file = symbol->file;
	other->function = symbol->function;
	other->function_size = symbol->function_size;
	return &other->h;
}

static const struct record *drop_source(Anonymizer *anonymizer, const struct record *record)
{
	(void)record;
	anonymizer->dropped.sources++;
	return NULL;
}

/*
 * A note on a file quotes names of others, without marks around them. Notes on the whole recording
 * are sentences of the recorder with numbers in them; a path in one is replaced.
 */
static const struct record *replace_note(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_note *note = (const struct rec_note *)record;
	const char *path = note->file < anonymizer->file_paths.count
				   ? anonymizer->file_paths.items[note->file]
				   : NULL;
	_cleanup_free_ char *text = NULL;

	if (note->file == 0) {
		text = anon_texts_function(&anonymizer->names, note->text);
	} else {
		anonymizer->dropped.notes++;
		text = xasprintf("some names of %s are missing (--anonymize hides why)",
				 path ? path : "a file");
	}
	begin(anonymizer, record, offsetof(struct rec_note, text));
	return finish(anonymizer, text, strlen(text) + 1);
}

/* Replaces "sda, sdb", or the path of the file of a loop device. The caller frees the result. */
static char *replace_lower_devices(Anonymizer *anonymizer, const char *names)
{
	_cleanup_free_ char *copy = xstrdup(names);
	char *rest = copy, *whole;
	AnonText text = {};

	if (*names == '/')
		return replace_path(anonymizer, names);
	for (char *name; *names && (name = strsep(&rest, ","));) {
		_cleanup_free_ char *other = NULL;

		other = anon_names_part(&anonymizer->names, name + strspn(name, " "), ANON_FILE);
		if (text.count > 0)
			vec_append(&text, ", ", 2);
		vec_append(&text, other, strlen(other));
	}
	whole = xstrndup(text.items ? text.items : "", text.count);
	vec_free(&text);
	return whole;
}

static const struct record *replace_device(Anonymizer *anonymizer, const struct record *record)
{
	const struct rec_device *device = (const struct rec_device *)record;
	const char *at = device->text, *end = at + device->size;
	struct rec_device *other;
	AnonText text = {};

	for (int i = 0; i < 3 && at < end; i++) {
		_cleanup_free_ char *string = xstrndup(at, end - at), *made = NULL;

		made = i == 0	? anon_names_part(&anonymizer->names, string, ANON_FILE)
		       : i == 1 ? replace_lower_devices(anonymizer, string)
				: replace_path(anonymizer, string);
		append_string(&text, made);
		at += strlen(string) + 1;
	}
	begin(anonymizer, record, offsetof(struct rec_device, text));
	other = (struct rec_device *)finish(anonymizer, text.items, MIN(text.count, UINT16_MAX));
	other->size = MIN(text.count, UINT16_MAX);
	vec_free(&text);
	return &other->h;
}

static const struct record *replace_meta(Anonymizer *anonymizer, const struct record *record)
{
	const char *text = ((const struct rec_meta *)record)->text;
	_cleanup_free_ char *other = anon_meta_replace(&anonymizer->names, text);

	if (!other) {
		anonymizer->dropped.settings++;
		return NULL;
	}
	begin(anonymizer, record, offsetof(struct rec_meta, text));
	return finish(anonymizer, other, strlen(other) + 1);
}

/* ---- all kinds ----------------------------------------------------------------------------- */

typedef const struct record *(*Replace)(Anonymizer *anonymizer, const struct record *record);

/*
 * What is done with each kind. A kind that is added to RECORD_KINDS does not compile until it has a
 * line here.
 */
#define ON_SWITCH	keep
#define ON_WAKING	keep
#define ON_TASK		replace_task
#define ON_EXEC		replace_exec
#define ON_EXIT		keep
#define ON_STATS	keep
#define ON_SNAPSHOT	keep
#define ON_SAMPLE	keep
#define ON_STACK	keep
#define ON_STACK_COPY	NULL /* it is never in a capture */
#define ON_FAULT	keep
#define ON_INODE	replace_inode
#define ON_REQUEST	keep
#define ON_SOCKET	replace_socket
#define ON_WATCH	keep
#define ON_FUTEX	keep
#define ON_ARGS		replace_args
#define ON_SCRIPT	keep
#define ON_SCRIPT_STACK keep
#define ON_SCRIPT_CODE	replace_script_code
#define ON_META		replace_meta
#define ON_WINDOW	keep
#define ON_WATERMARK	keep
#define ON_FILE		replace_file
#define ON_MAPPING	keep
#define ON_SPACE	keep
#define ON_SYMBOL	replace_symbol
#define ON_LOSS		keep
#define ON_TOTAL	keep
#define ON_END		keep
#define ON_CODE		keep
#define ON_SOURCE	drop_source
#define ON_NOTE		replace_note
#define ON_DEVICE	replace_device

static const Replace replace_kind[] = {
#define KIND(name, number, word, flags, length) [REC_##name] = ON_##name,
	RECORD_KINDS(KIND)
#undef KIND
};

static Replace replace_of(const struct record *record)
{
	return record->kind < ARRAY_LEN(replace_kind) ? replace_kind[record->kind] : NULL;
}

void anonymizer_learn(Anonymizer *anonymizer, const struct record *record)
{
	Replace replace = replace_of(record);

	if (replace && replace != keep)
		replace(anonymizer, record);
}

static void end_learning(Anonymizer *anonymizer)
{
	if (!anonymizer->names.is_learning)
		return;
	anon_names_learned(&anonymizer->names);
	anonymizer->dropped = (AnonymizerCounts){};
}

const struct record *anonymizer_replace(Anonymizer *anonymizer, const struct record *record)
{
	Replace replace = replace_of(record);

	end_learning(anonymizer);
	if (replace)
		return replace(anonymizer, record);
	anonymizer->dropped.unknown++;
	return NULL;
}

const struct record *anonymizer_mark(Anonymizer *anonymizer, enum record_kind kind)
{
	static const char setting[] =
		ANONYMIZER_META "=names of files, hosts, arguments and users are replaced";
	static const char remark[] =
		"names of files, hosts, arguments and users are replaced (--anonymize)";
	const struct rec_note note = {.h = {.kind = kind}};

	if (kind == REC_NOTE) {
		begin(anonymizer, &note.h, offsetof(struct rec_note, text));
		return finish(anonymizer, remark, sizeof(remark));
	}
	begin(anonymizer, &note.h, sizeof(note.h));
	return finish(anonymizer, setting, sizeof(setting));
}

/* ---- selecting by true names --------------------------------------------------------------- */

/* Appends a name as a pattern for this name alone, but for commas, which separate patterns. */
static void append_pattern(AnonText *text, const char *name)
{
	if (text->count > 0)
		*vec_push(text) = ',';
	for (; *name; name++) {
		if (strchr("\\*?[", *name))
			*vec_push(text) = '\\';
		*vec_push(text) = *name == ',' ? '?' : *name;
	}
}

/* Appends patterns for what stands for the names that a pattern selects. */
static void append_selected(Anonymizer *anonymizer, const char *pattern, AnonText *text)
{
	for (size_t i = 0; i < anonymizer->threads.list.count; i++) {
		const char *name = strings_get(&anonymizer->threads, i);
		_cleanup_free_ char *other = NULL;

		if (fnmatch(pattern, name, 0) != 0)
			continue;
		other = anon_names_comm(&anonymizer->names, name);
		append_pattern(text, other);
		/* A record has no place for "thread10.service" in the place of "x.service". */
		if (strlen(name) < COMM_LEN && strlen(other) >= COMM_LEN) {
			other[COMM_LEN - 1] = '\0';
			append_pattern(text, other);
		}
	}
	for (size_t i = 0; i < anonymizer->kernel_names.list.count; i++) {
		const char *name = strings_get(&anonymizer->kernel_names, i);
		_cleanup_free_ char *other = NULL;

		if (fnmatch(pattern, name, 0) != 0)
			continue;
		other = anon_names_kernel_comm(&anonymizer->names, name);
		append_pattern(text, other);
	}
}

char *anonymizer_filter(Anonymizer *anonymizer, const char *patterns)
{
	_cleanup_free_ char *copy = patterns ? xstrdup(patterns) : NULL;
	AnonText text = {};
	char *rest = copy, *whole;
	uint64_t id;

	if (!patterns)
		return NULL;
	end_learning(anonymizer);
	for (char *word; (word = strsep(&rest, ","));) {
		if (parse_u64(word, &id) == 0)
			append_pattern(&text, word);
		append_selected(anonymizer, word, &text);
	}
	whole = xstrndup(text.items ? text.items : "", text.count);
	vec_free(&text);
	return whole;
}

/* ---- what was done ------------------------------------------------------------------------- */

AnonymizerCounts anonymizer_counts(const Anonymizer *anonymizer)
{
	const uint32_t *replaced = anonymizer->names.replaced;
	AnonymizerCounts counts = anonymizer->dropped;

	counts.files = replaced[ANON_FILE];
	counts.folders = replaced[ANON_FOLDER];
	counts.threads = replaced[ANON_THREAD];
	counts.sockets = replaced[ANON_SOCKET];
	counts.hosts = replaced[ANON_HOST];
	counts.arguments = replaced[ANON_ARGUMENT];
	counts.functions = anonymizer->functions.list.count;
	counts.system_files = anonymizer->system_files.list.count;
	counts.kernel_threads = anonymizer->kernel_threads.list.count;
	return counts;
}

void anonymizer_log(const Anonymizer *anonymizer)
{
	AnonymizerCounts counts = anonymizer_counts(anonymizer);

	log_info("anonymized: names replaced: %zu of files, %zu of folders, %zu of threads, %zu of "
		 "sockets, %zu of hosts, %zu arguments; dropped: %zu source texts, %zu build IDs, "
		 "%zu settings, %zu remarks",
		 counts.files, counts.folders, counts.threads, counts.sockets, counts.hosts,
		 counts.arguments, counts.sources, counts.build_ids,
		 counts.settings + counts.unknown, counts.notes);
	log_info("not anonymized: %zu names of functions, %zu of the system's files, %zu of kernel "
		 "threads; IDs of processes, addresses, ports, the time of day, kernel, CPU model",
		 counts.functions, counts.system_files, counts.kernel_threads);
}
