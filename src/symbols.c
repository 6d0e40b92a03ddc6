/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.c - one pass over a capture's stacks, then one look into each file.
 *
 * First every different address is collected: kernel addresses as they are, user
 * addresses by process. Then each user address becomes the (file, SVMA) pairs
 * that it can have meant, these are sorted by file, and each file is opened,
 * read, asked and closed in turn, so that memory is that of the largest file.
 */
#include "symbols.h"
#include "elf_file.h"
#include "kallsyms.h"
#include "vdso.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- collecting addresses ------------------------------------------------ */

typedef struct UserAddress {
	uint32_t tgid;
	uint64_t avma;
} UserAddress;

/* A process's number in our PID namespace; reuse can give a tgid several. */
typedef struct Alias {
	uint32_t ns_tgid;
	uint32_t next; /* of the same tgid, or MAP_NONE */
} Alias;

typedef struct Target {
	uint32_t file;
	uint64_t svma;
} Target;

typedef struct Resolver {
	const SymbolsSink *sink;
	SymbolsSummary summary;
	Spaces *spaces;
	VEC(UserAddress) users;
	Map users_known; /* hash -> users */
	VEC(uint64_t) kernel;
	Map kernel_known;
	VEC(Alias) aliases;
	Map first_alias; /* tgid -> aliases */
	VEC(Target) targets;
	VEC(uint8_t) record; /* the REC_SYMBOL being built */
} Resolver;

static void add_alias(Resolver *resolver, uint32_t tgid, uint32_t ns_tgid)
{
	uint32_t first = map_get(&resolver->first_alias, tgid);

	if (ns_tgid == 0)
		return;
	for (uint32_t i = first; i != MAP_NONE; i = resolver->aliases.items[i].next)
		if (resolver->aliases.items[i].ns_tgid == ns_tgid)
			return;
	*vec_push(&resolver->aliases) = (Alias){.ns_tgid = ns_tgid, .next = first};
	map_set(&resolver->first_alias, tgid, resolver->aliases.count - 1);
}

static void add_user(Resolver *resolver, uint32_t tgid, uint64_t avma)
{
	uint64_t key = hash_mix(tgid, avma);
	uint32_t known = map_get(&resolver->users_known, key);

	/* Two addresses of one hash displace each other: looked up twice, never missed. */
	if (known != MAP_NONE && resolver->users.items[known].tgid == tgid &&
	    resolver->users.items[known].avma == avma)
		return;
	map_set(&resolver->users_known, key, resolver->users.count);
	*vec_push(&resolver->users) = (UserAddress){.tgid = tgid, .avma = avma};
}

static void add_kernel(Resolver *resolver, uint64_t avma)
{
	if (map_get(&resolver->kernel_known, avma) != MAP_NONE)
		return;
	map_set(&resolver->kernel_known, avma, 0);
	*vec_push(&resolver->kernel) = avma;
}

static void add_stack(Resolver *resolver, const struct rec_stack *stack)
{
	bool user = stack->h.flags & STACK_USER;

	for (size_t i = 0; i < stack->count; i++) {
		uint64_t pc = stack->frames[i];
		bool leaf = i == 0;

		if (user) {
			bool exact = leaf && !(stack->h.flags & STACK_SYSCALL_PC);

			add_user(resolver, stack->tgid, symbols_lookup_address(pc, exact));
			continue;
		}
		/* A kernel leaf is a return address in a switch, exact in a tick. */
		add_kernel(resolver, symbols_lookup_address(pc, false));
		if (leaf)
			add_kernel(resolver, symbols_lookup_address(pc, true));
	}
}

/* A change of an address space, and its place in the file. */
typedef struct Change {
	struct record *record;
	size_t place;
} Change;

typedef VEC(Change) Changes;

static int compare_changes(const void *a, const void *b)
{
	const Change *x = a, *y = b;

	if (x->record->ns != y->record->ns)
		return x->record->ns < y->record->ns ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* In order of time, as spaces_add() wants them. */
static void add_changes(Resolver *resolver, Changes *changes)
{
	if (changes->count)
		qsort(changes->items, changes->count, sizeof(*changes->items), compare_changes);
	for (size_t i = 0; i < changes->count; i++) {
		spaces_add(resolver->spaces, changes->items[i].record);
		free(changes->items[i].record);
	}
	vec_free(changes);
}

/*
 * In file order, for the sorted one holds back a second of events, and only the changes of
 * address spaces need it.
 */
static int collect(Resolver *resolver, CaptureReader *reader)
{
	const struct record *record;
	Changes changes = {};
	int r = capture_reader_rewind(reader);

	while (r >= 0 && (r = capture_read(reader, &record)) > 0) {
		if (record->kind == REC_STACK) {
			add_stack(resolver, (const struct rec_stack *)record);
		} else if (record->kind == REC_TASK) {
			const struct rec_task *task = (const struct rec_task *)record;

			add_alias(resolver, task->tgid, task->ns_tgid);
		} else if (record->kind == REC_MAPPING || record->kind == REC_SPACE) {
			struct record *copy = memcpy(xmalloc(record->len), record, record->len);

			*vec_push(&changes) = (Change){copy, changes.count};
		} else {
			spaces_add(resolver->spaces, record);
		}
	}
	add_changes(resolver, &changes);
	return r;
}

/* ---- from processes' addresses to files' addresses ------------------------ */

static void add_target(void *user, const MappedFile *file, uint64_t svma)
{
	Resolver *resolver = user;

	if (file->flags & (FILE_ANON | FILE_JIT))
		return;
	*vec_push(&resolver->targets) = (Target){.file = file->id, .svma = svma};
}

static int compare_targets(const void *a, const void *b)
{
	const Target *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

static void find_targets(Resolver *resolver)
{
	size_t kept = 0;

	for (size_t i = 0; i < resolver->users.count; i++) {
		UserAddress user = resolver->users.items[i];
		uint32_t alias = map_get(&resolver->first_alias, user.tgid);

		/* Never described (its REC_TASK was lost): most likely the same number. */
		if (alias == MAP_NONE)
			spaces_locate_any(resolver->spaces, user.tgid, user.avma, add_target,
					  resolver);
		for (; alias != MAP_NONE; alias = resolver->aliases.items[alias].next)
			spaces_locate_any(resolver->spaces, resolver->aliases.items[alias].ns_tgid,
					  user.avma, add_target, resolver);
	}
	if (resolver->targets.count == 0)
		return;
	qsort(resolver->targets.items, resolver->targets.count, sizeof(Target), compare_targets);
	for (size_t i = 0; i < resolver->targets.count; i++)
		if (kept == 0 || compare_targets(&resolver->targets.items[kept - 1],
						 &resolver->targets.items[i]))
			resolver->targets.items[kept++] = resolver->targets.items[i];
	resolver->targets.count = kept;
}

/* ---- building a REC_SYMBOL ------------------------------------------------ */

static size_t append(Resolver *resolver, const void *data, size_t size)
{
	size_t place = resolver->record.count;

	while (resolver->record.capacity < place + size)
		(void)vec_push(&resolver->record);
	resolver->record.count = place + size;
	memcpy(resolver->record.items + place, data, size);
	return place;
}

static void begin_symbol(Resolver *resolver, uint32_t file, uint64_t address, uint64_t function,
			 uint64_t function_size)
{
	struct rec_symbol symbol = {
		.h.kind = REC_SYMBOL,
		.file = file,
		.address = address,
		.function = function,
		.function_size = function_size <= UINT32_MAX ? function_size : 0,
	};

	resolver->record.count = 0;
	append(resolver, &symbol, offsetof(struct rec_symbol, text));
}

/* Outermost first. line 0 and source "" when unknown. */
static void add_symbol_frame(Resolver *resolver, u32 line, const char *name, const char *source)
{
	append(resolver, &line, sizeof(line));
	append(resolver, name, strlen(name) + 1);
	append(resolver, source, strlen(source) + 1);
	((struct rec_symbol *)resolver->record.items)->count++;
}

static int emit_symbol(Resolver *resolver, const char *module)
{
	static const uint8_t zeros[8];
	struct rec_symbol *symbol;
	size_t place = 0;

	if (module)
		place = append(resolver, module, strlen(module) + 1);
	append(resolver, zeros, -resolver->record.count & 7);
	symbol = (struct rec_symbol *)resolver->record.items;
	symbol->h.len = resolver->record.count;
	symbol->lib = module ? place - offsetof(struct rec_symbol, text) : 0;
	resolver->summary.named++;
	return resolver->sink->emit(resolver->sink->user, &symbol->h);
}

/* ---- user files ----------------------------------------------------------- */

/* Without a build id, only an untouched file can be known to be the same. */
static bool is_untouched(const MappedFile *file, int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && (uint64_t)st.st_size == file->size &&
	       st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec == file->mtime_ns;
}

static bool same_file(const MappedFile *file, const ElfIdentity *identity, int fd)
{
	if (file->build_id_len != identity->build_id_len || file->base_svma != identity->base_svma)
		return false;
	return file->build_id_len ? !memcmp(file->build_id, identity->build_id, file->build_id_len)
				  : is_untouched(file, fd);
}

/* The symbols of fd, or of an image if there is one. */
static int read_symbols(const MappedFile *file, const void *image, size_t size, int fd,
			ElfSymbols *ret_symbols)
{
	ElfIdentity identity;
	bool same;
	int r;

	r = image ? elf_identify_image(image, size, &identity) : elf_identify(fd, &identity);
	if (r < 0)
		return r;
	same = same_file(file, &identity, fd);
	elf_identity_free(&identity);
	if (!same)
		return -ESTALE;
	return image ? elf_symbols_read_image(image, size, ret_symbols)
		     : elf_symbols_read(fd, ret_symbols);
}

static int open_symbols(Resolver *resolver, const MappedFile *file, ElfSymbols *ret_symbols)
{
	const void *image = NULL;
	size_t size = 0;
	int fd = -1;

	if (file->flags & FILE_VDSO) {
		image = vdso_image(&size);
		if (!image)
			return -ENOENT;
	} else if (file->flags & FILE_UNREADABLE) {
		return -ENOENT;
	} else {
		fd = resolver->sink->open(resolver->sink->open_user, file);
		if (fd < 0)
			return fd;
	}
	return read_symbols(file, image, size, fd, ret_symbols);
}

static int name_targets(Resolver *resolver, const Target *targets, size_t count,
			const ElfSymbols *symbols)
{
	for (size_t i = 0; i < count; i++) {
		const ElfSymbol *symbol = elf_symbols_find(symbols, targets[i].svma);
		int r;

		if (!symbol)
			continue;
		begin_symbol(resolver, targets[i].file, targets[i].svma, symbol->start,
			     symbol->size);
		add_symbol_frame(resolver, 0, symbols->names.items + symbol->name, "");
		r = emit_symbol(resolver, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static int resolve_file(Resolver *resolver, const Target *targets, size_t count)
{
	const MappedFile *file = spaces_file(resolver->spaces, targets[0].file);
	ElfSymbols symbols = {};
	int r = open_symbols(resolver, file, &symbols);

	if (r < 0) {
		log_verbose("no names from %s: %s", file->path,
			    r == -ESTALE ? "not the file that was mapped" : strerror(-r));
		if (r == -ESTALE)
			resolver->summary.files_mismatched++;
		else
			resolver->summary.files_unreadable++;
		return 0;
	}
	r = name_targets(resolver, targets, count, &symbols);
	elf_symbols_free(&symbols);
	return r;
}

static int resolve_files(Resolver *resolver)
{
	const Target *targets = resolver->targets.items;

	for (size_t i = 0, next; i < resolver->targets.count; i = next) {
		int r;

		for (next = i + 1; next < resolver->targets.count; next++)
			if (targets[next].file != targets[i].file)
				break;
		r = resolve_file(resolver, targets + i, next - i);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- kernel --------------------------------------------------------------- */

static int resolve_kernel(Resolver *resolver)
{
	Kallsyms *kallsyms;
	int r = kallsyms_load("/proc/kallsyms", &kallsyms);

	if (r < 0) {
		resolver->summary.kernel_hidden = r == -EPERM;
		log_verbose("no kernel names: %s", strerror(-r));
		return 0;
	}
	for (size_t i = 0; i < resolver->kernel.count && r >= 0; i++) {
		KernelSymbol symbol;

		if (!kallsyms_find(kallsyms, resolver->kernel.items[i], &symbol))
			continue;
		begin_symbol(resolver, 0, resolver->kernel.items[i], symbol.start, symbol.size);
		add_symbol_frame(resolver, 0, symbol.name, "");
		r = emit_symbol(resolver, symbol.module);
	}
	kallsyms_free(kallsyms);
	return r;
}

static void resolver_free(Resolver *resolver)
{
	spaces_free(resolver->spaces);
	vec_free(&resolver->users);
	map_free(&resolver->users_known);
	vec_free(&resolver->kernel);
	map_free(&resolver->kernel_known);
	vec_free(&resolver->aliases);
	map_free(&resolver->first_alias);
	vec_free(&resolver->targets);
	vec_free(&resolver->record);
}

int symbols_resolve(CaptureReader *reader, const SymbolsSink *sink, bool with_kernel,
		    SymbolsSummary *ret_summary)
{
	Resolver resolver = {.sink = sink, .spaces = spaces_new()};
	int r = collect(&resolver, reader);

	if (r == 0) {
		find_targets(&resolver);
		resolver.summary.addresses = resolver.targets.count + resolver.kernel.count;
		r = resolve_files(&resolver);
	}
	if (r == 0 && with_kernel)
		r = resolve_kernel(&resolver);
	*ret_summary = resolver.summary;
	resolver_free(&resolver);
	return r;
}

/* ---- opening by path ------------------------------------------------------ */

struct SymbolsFiles {
	int fd;
};

SymbolsFiles *symbols_files_new(void)
{
	SymbolsFiles *files = xmalloc(sizeof(*files));

	files->fd = -1;
	return files;
}

int symbols_open_by_path(void *user, const MappedFile *file)
{
	SymbolsFiles *files = user;

	closep(&files->fd);
	/* Not to wait where a FIFO stands now. */
	files->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return files->fd < 0 ? -errno : files->fd;
}

void symbols_files_free(SymbolsFiles *files)
{
	closep(&files->fd);
	free(files);
}
