/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * symbols.c - one pass over a capture's stacks, then one lookup for each file.
 *
 * Every different address is collected: kernel addresses as they are, user addresses by process.
 * Then each user address becomes the (file, SVMA) pairs that it can have meant, these are sorted by
 * file, and symbol_files.c finds their names.
 */
#include "symbols.h"
#include "as_invoker.h"
#include "frame_address.h"
#include "jit_names.h"
#include "kallsyms.h"
#include "own_code.h"
#include "safe_open.h"
#include "signals.h"
#include "symbol_files.h"
#include "symbol_record.h"
#include <errno.h>
#include <string.h>

/* ---- collecting addresses ------------------------------------------------ */

typedef struct UserAddress {
	uint32_t tgid;
	uint64_t avma;
	uint64_t weight;
	bool needed; /* a stack has it that is not replaced by another definition */
} UserAddress;

/* A definition of a user stack. How often it was seen is only known at the end of the capture. */
typedef struct SeenStack {
	uint64_t id;
	size_t first; /* in stack_users */
	uint32_t count;
	bool from_copy; /* it was walked later, from a copy */
} SeenStack;

/* The address of a variable. */
typedef struct DataAddress {
	uint32_t tgid;
	uint64_t avma, ns;
} DataAddress;

/* A process's id in the recorder's PID namespace; by reuse a tgid can have several. */
typedef struct Alias {
	uint32_t ns_tgid;
	uint32_t next; /* the next one with the same tgid, or MAP_NONE */
} Alias;

typedef struct Resolver {
	const SymbolsSink *sink;
	SymbolsSummary summary;
	AddressSpaces *spaces;
	Map weights; /* stack id -> samples and switches that have it; only filled for sources */
	Map copied;  /* ids of stacks that were walked later, from a copy */
	VEC(SeenStack) stacks;
	VEC(uint32_t) stack_users; /* the index in users of each of their frames */
	VEC(UserAddress) users;
	Map users_known; /* hash -> users */
	VEC(uint64_t) kernel;
	Map kernel_known;
	OwnCode own_code; /* it has no names any more when kernel addresses are resolved */
	VEC(Alias) aliases;
	Map first_alias; /* tgid -> aliases */
	VEC(SymbolTarget) targets;
	VEC(DataAddress) data;
	Map data_known; /* hash -> data */
	Map tgid_of_tid;
	VEC(uint64_t) fileless; /* user addresses where no file with names is mapped */
	Map fileless_known;
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

/* Returns its index in users. */
static uint32_t add_user(Resolver *resolver, uint32_t tgid, uint64_t avma)
{
	uint64_t key = hash_mix(tgid, avma);
	uint32_t known = map_get(&resolver->users_known, key);

	/*
	 * Two addresses with one hash displace each other: they are looked up twice, but never
	 * missed.
	 */
	if (known != MAP_NONE && resolver->users.items[known].tgid == tgid &&
	    resolver->users.items[known].avma == avma)
		return known;
	map_set(&resolver->users_known, key, resolver->users.count);
	*vec_push(&resolver->users) = (UserAddress){.tgid = tgid, .avma = avma};
	return resolver->users.count - 1;
}

static void add_kernel(Resolver *resolver, uint64_t avma)
{
	if (map_get(&resolver->kernel_known, avma) != MAP_NONE)
		return;
	map_set(&resolver->kernel_known, avma, 0);
	*vec_push(&resolver->kernel) = avma;
}

static void add_meta(Resolver *resolver, const struct rec_meta *record)
{
	static const char key[] = "own-code=";
	size_t room = record->h.len - sizeof(*record);

	if (room >= strlen(key) && !memcmp(record->text, key, strlen(key)))
		own_code_parse(&resolver->own_code, record->text + strlen(key), room - strlen(key));
}

static void add_user_stack(Resolver *resolver, const struct rec_stack *stack)
{
	bool by_tables = stack_by_tables(stack->h.flags, stack->result, stack->tables_ns);

	*vec_push(&resolver->stacks) = (SeenStack){
		.id = stack->id,
		.first = resolver->stack_users.count,
		.count = stack->count,
		.from_copy = stack->h.flags & STACK_FROM_COPY,
	};
	if (stack->h.flags & STACK_FROM_COPY)
		map_set(&resolver->copied, stack->id, 0);
	for (size_t i = 0; i < stack->count; i++) {
		uint64_t avma = stack_user_address(stack->frames[i], i, stack->h.flags, by_tables);

		*vec_push(&resolver->stack_users) = add_user(resolver, stack->tgid, avma);
	}
}

static void add_kernel_stack(Resolver *resolver, const struct rec_stack *stack)
{
	/* In a switch, a leaf in the kernel is a return address; in a tick it is exact. */
	for (size_t i = 0; i < stack->count; i++)
		add_kernel(resolver, stack_lookup_address(stack->frames[i], false));
	if (stack->count)
		add_kernel(resolver, stack_lookup_address(stack->frames[0], true));
}

/* Counts, for the source files that matter most, how often a stack was seen. */
static void weigh_stack(Resolver *resolver, uint64_t id)
{
	uint32_t weight = map_get(&resolver->weights, id);

	if (id)
		map_set(&resolver->weights, id, weight == MAP_NONE ? 1 : weight + 1);
}

/*
 * A stack that was also walked from a copy has two definitions. The names of the other one are not
 * needed.
 */
static void weigh_users(Resolver *resolver)
{
	for (size_t i = 0; i < resolver->stacks.count; i++) {
		const SeenStack *stack = &resolver->stacks.items[i];
		uint32_t weight = map_get(&resolver->weights, stack->id);

		if (!stack->from_copy && map_get(&resolver->copied, stack->id) != MAP_NONE)
			continue;
		for (size_t f = 0; f < stack->count; f++) {
			uint32_t index = resolver->stack_users.items[stack->first + f];
			UserAddress *user = &resolver->users.items[index];

			user->needed = true;
			user->weight += weight == MAP_NONE ? 0 : weight;
		}
	}
}

/* A word that a process waits for gets a name if it is a variable of a file. Each is added once. */
static void add_data(Resolver *resolver, uint32_t tgid, uint64_t avma, uint64_t ns)
{
	uint64_t key = hash_mix(tgid, avma);
	uint32_t known = map_get(&resolver->data_known, key);

	if (known != MAP_NONE && resolver->data.items[known].tgid == tgid &&
	    resolver->data.items[known].avma == avma && resolver->data.items[known].ns == ns)
		return;
	map_set(&resolver->data_known, key, resolver->data.count);
	*vec_push(&resolver->data) = (DataAddress){tgid, avma, ns};
}

static void add_futex(Resolver *resolver, const struct rec_futex *futex)
{
	if (futex->memory != MEMORY_SHARED && futex->memory != MEMORY_STACK)
		add_data(resolver, futex->tgid, futex->address, futex->h.ns);
}

#define FUTEX 202 /* the system call of x86-64 */

/* For a thread that has waited since before the window there is no other record. */
static void add_asleep(Resolver *resolver, const struct rec_snapshot *snapshot)
{
	uint32_t tgid = map_get(&resolver->tgid_of_tid, snapshot->tid);

	if (snapshot->syscall == FUTEX && tgid != MAP_NONE)
		add_data(resolver, tgid, snapshot->args[0], snapshot->h.ns);
}

/* A change of an address space, and its offset in the file. */
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

/* address_spaces_add() needs them in order of time. */
static void add_changes(Resolver *resolver, Changes *changes)
{
	if (changes->count)
		qsort(changes->items, changes->count, sizeof(*changes->items), compare_changes);
	for (size_t i = 0; i < changes->count; i++) {
		address_spaces_add(resolver->spaces, changes->items[i].record);
		free(changes->items[i].record);
	}
	vec_free(changes);
}

/* Collects from a record; changes of address spaces are kept for later. */
static void collect_record(Resolver *resolver, const struct record *record, Changes *changes)
{
	bool weigh = resolver->sink->sources;

	if (record->kind == REC_STACK && record->flags & STACK_USER) {
		add_user_stack(resolver, (const struct rec_stack *)record);
	} else if (record->kind == REC_STACK) {
		add_kernel_stack(resolver, (const struct rec_stack *)record);
	} else if (record->kind == REC_SAMPLE && weigh) {
		weigh_stack(resolver, ((const struct rec_sample *)record)->ustack);
	} else if (record->kind == REC_SWITCH && record->flags & SWITCH_PREV && weigh) {
		/* The reader has checked that such a record has its stacks. */
		weigh_stack(resolver, ((const struct rec_switch *)record)->ustack);
	} else if (record->kind == REC_FUTEX) {
		add_futex(resolver, (const struct rec_futex *)record);
	} else if (record->kind == REC_TASK) {
		const struct rec_task *task = (const struct rec_task *)record;

		add_alias(resolver, task->tgid, task->ns_tgid);
		map_set(&resolver->tgid_of_tid, task->tid, task->tgid);
	} else if (record->kind == REC_META) {
		add_meta(resolver, (const struct rec_meta *)record);
	} else if (record->kind == REC_SNAPSHOT) {
		add_asleep(resolver, (const struct rec_snapshot *)record);
	} else if (record->kind == REC_MAPPING || record->kind == REC_SPACE) {
		struct record *copy = memcpy(xmalloc(record->len), record, record->len);

		*vec_push(changes) = (Change){copy, changes->count};
	} else {
		address_spaces_add(resolver->spaces, record);
	}
}

/*
 * This reads in file order: the sorted one holds back a second of events, and only the changes of
 * address spaces need it.
 */
static int collect(Resolver *resolver, CaptureReader *reader)
{
	const struct record *record;
	Changes changes = {};
	int r = capture_reader_rewind(reader);

	while (r >= 0 && (r = capture_read(reader, &record)) > 0)
		collect_record(resolver, record, &changes);
	add_changes(resolver, &changes);
	weigh_users(resolver);
	return r;
}

/* ---- from processes' addresses to files' addresses ------------------------ */

/* The location of a process's address in a file, and its weight. */
typedef struct AddressVisit {
	Resolver *resolver;
	uint64_t weight;
	bool in_file;
} AddressVisit;

static void add_target(void *user, const MappedFile *file, uint64_t svma)
{
	AddressVisit *visit = user;

	if (file->flags & (FILE_ANON | FILE_JIT))
		return;
	/* A perf map or a jitdump takes precedence over what memory says. */
	visit->in_file |= !(file->flags & (FILE_UNREADABLE | FILE_MEMORY));
	*vec_push(&visit->resolver->targets) =
		(SymbolTarget){.file = file->id, .svma = svma, .weight = visit->weight};
}

static void add_fileless(Resolver *resolver, uint64_t avma)
{
	if (map_get(&resolver->fileless_known, avma) != MAP_NONE)
		return;
	map_set(&resolver->fileless_known, avma, 0);
	*vec_push(&resolver->fileless) = avma;
}

static int compare_targets(const void *a, const void *b)
{
	const SymbolTarget *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->svma < y->svma ? -1 : x->svma > y->svma;
}

static void find_user_targets(Resolver *resolver, const UserAddress *user)
{
	AddressVisit visit = {.resolver = resolver, .weight = user->weight};
	uint32_t alias = map_get(&resolver->first_alias, user->tgid);

	/* It was never described (its REC_TASK was lost): most likely the two ids are the same. */
	if (alias == MAP_NONE)
		address_spaces_locate_any(resolver->spaces, user->tgid, user->avma, add_target,
					  &visit);
	for (; alias != MAP_NONE; alias = resolver->aliases.items[alias].next)
		address_spaces_locate_any(resolver->spaces, resolver->aliases.items[alias].ns_tgid,
					  user->avma, add_target, &visit);
	if (!visit.in_file)
		add_fileless(resolver, user->avma);
}

static void find_data_target(Resolver *resolver, const DataAddress *data, uint32_t ns_tgid)
{
	Location location =
		address_spaces_locate_data(resolver->spaces, ns_tgid, data->ns, data->avma);
	AddressVisit visit = {.resolver = resolver};

	if (location.file)
		add_target(&visit, location.file, location.svma);
}

static void find_data_targets(Resolver *resolver, const DataAddress *data)
{
	uint32_t alias = map_get(&resolver->first_alias, data->tgid);

	if (alias == MAP_NONE)
		find_data_target(resolver, data, data->tgid);
	for (; alias != MAP_NONE; alias = resolver->aliases.items[alias].next)
		find_data_target(resolver, data, resolver->aliases.items[alias].ns_tgid);
}

static void find_targets(Resolver *resolver)
{
	size_t kept = 0;

	for (size_t i = 0; i < resolver->users.count; i++)
		if (resolver->users.items[i].needed)
			find_user_targets(resolver, &resolver->users.items[i]);
	for (size_t i = 0; i < resolver->data.count; i++)
		find_data_targets(resolver, &resolver->data.items[i]);
	if (resolver->targets.count == 0)
		return;
	qsort(resolver->targets.items, resolver->targets.count, sizeof(SymbolTarget),
	      compare_targets);
	for (size_t i = 0; i < resolver->targets.count; i++) {
		const SymbolTarget *target = &resolver->targets.items[i];
		SymbolTarget *last = kept ? &resolver->targets.items[kept - 1] : NULL;

		if (last && !compare_targets(last, target))
			last->weight += target->weight;
		else
			resolver->targets.items[kept++] = *target;
	}
	resolver->targets.count = kept;
}

/* ---- kernel --------------------------------------------------------------- */

static uint64_t highest_kernel_address(const Resolver *resolver)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < resolver->kernel.count; i++)
		if (!own_code_contains(&resolver->own_code, resolver->kernel.items[i]))
			highest = MAX(highest, resolver->kernel.items[i]);
	return highest;
}

static int resolve_kernel(Resolver *resolver)
{
	SymbolRecord record = {};
	Kallsyms *kallsyms;
	int r = kallsyms_load("/proc/kallsyms", highest_kernel_address(resolver), &kallsyms);

	if (r < 0) {
		resolver->summary.kernel_error = r;
		return 0;
	}
	for (size_t i = 0; i < resolver->kernel.count && r >= 0; i++) {
		struct rec_symbol *built;
		KernelSymbol symbol;

		if (!kallsyms_find(kallsyms, resolver->kernel.items[i], &symbol))
			continue;
		symbol_record_begin(&record, resolver->kernel.items[i]);
		symbol_record_add(&record, symbol.name, "", 0);
		built = symbol_record_finish(&record, symbol.module);
		built->function = symbol.start;
		built->function_size = symbol.size;
		resolver->summary.named++;
		r = resolver->sink->emit(resolver->sink->user, &built->h);
	}
	symbol_record_free(&record);
	kallsyms_free(kallsyms);
	return r;
}

static void resolver_free(Resolver *resolver)
{
	address_spaces_free(resolver->spaces);
	map_free(&resolver->weights);
	map_free(&resolver->copied);
	vec_free(&resolver->stacks);
	vec_free(&resolver->stack_users);
	vec_free(&resolver->users);
	map_free(&resolver->users_known);
	vec_free(&resolver->kernel);
	map_free(&resolver->kernel_known);
	vec_free(&resolver->own_code);
	vec_free(&resolver->aliases);
	map_free(&resolver->first_alias);
	vec_free(&resolver->targets);
	vec_free(&resolver->data);
	map_free(&resolver->data_known);
	map_free(&resolver->tgid_of_tid);
	vec_free(&resolver->fileless);
	map_free(&resolver->fileless_known);
}

void symbols_warn_kernel(const SymbolsSummary *summary)
{
	if (summary->kernel_error)
		log_warn("kernel functions have no names: /proc/kallsyms: %s",
			 kallsyms_error_text(summary->kernel_error));
}

int symbols_resolve(CaptureReader *reader, const SymbolsSink *sink, bool with_kernel,
		    SymbolsSummary *ret_summary)
{
	Resolver resolver = {.sink = sink, .spaces = address_spaces_new()};
	int r = collect(&resolver, reader);

	signals_begin_lookup();
	if (r == 0) {
		find_targets(&resolver);
		resolver.summary.addresses = resolver.targets.count + resolver.kernel.count;
		r = symbol_files_resolve(resolver.spaces, resolver.targets.items,
					 resolver.targets.count, sink, &resolver.summary);
	}
	if (r == 0 && sink->jit)
		r = jit_names_resolve(sink->jit, resolver.fileless.items, resolver.fileless.count,
				      address_spaces_file_count(resolver.spaces) + 1, sink,
				      &resolver.summary);
	signals_end_lookup();
	if (r == 0 && with_kernel)
		r = resolve_kernel(&resolver);
	*ret_summary = resolver.summary;
	resolver_free(&resolver);
	return r;
}

/* ---- opening by path ------------------------------------------------------ */

int symbols_open_by_path(void *user, const MappedFile *file)
{
	return symbols_open_beside_by_path(user, file, file->path);
}

int symbols_open_named_by_path(void *user, const MappedFile *file, const char *path)
{
	const AsInvoker *as = user;
	struct stat st;
	int fd = as_invoker_enter(as), r;

	if (fd < 0)
		return fd;
	fd = sources_open_late(NULL, file->id, path, &st);
	r = as_invoker_leave(as);
	if (r < 0)
		closep(&fd);
	return r < 0 ? r : fd;
}

int symbols_open_beside_by_path(void *user, const MappedFile *file, const char *path)
{
	const AsInvoker *as = user;
	struct stat st;
	int fd = as_invoker_enter(as), r;

	(void)file;
	if (fd < 0)
		return fd;
	fd = safe_open(path, RESOLVE_NO_MAGICLINKS, &st);
	r = as_invoker_leave(as);
	if (r < 0)
		closep(&fd);
	return r < 0 ? r : fd;
}
