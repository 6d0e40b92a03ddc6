/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "served_symbols.h"
#include "safe_open.h"
#include "symbol_files.h"
#include "symbols.h"
#include "vdso.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool is_vdso(const ServedLib *lib)
{
	return !strcmp(lib->path, "[vdso]");
}

static int open_lib(const ServedLib *lib)
{
	struct stat st;

	if (is_vdso(lib))
		return vdso_open();
	if (!strcmp(lib->path, "[kernel.kallsyms]"))
		return -ENOTSUP;
	if (*lib->path != '/' || lib->path[1] == '/') /* "[ext4]", "[heap]", "//anon" */
		return -ENXIO;
	return lib->build_id_len ? safe_open(lib->path, 0, &st) : -ENODATA;
}

int served_symbols_open(ElfIdentifier *identifier, const ServedLib *lib, ElfIdentity *ret_identity)
{
	_cleanup_(elf_identity_free) ElfIdentity identity = {};
	_cleanup_close_ int fd = open_lib(lib);
	int error;

	*ret_identity = identity;
	if (fd < 0)
		return fd;
	error = elf_identifier_identify(identifier, fd, &identity);
	if (error)
		return error;
	if (identity.build_id_len != lib->build_id_len ||
	    memcmp(identity.build_id, lib->build_id, lib->build_id_len) != 0)
		return -ESTALE;
	*ret_identity = identity;
	identity = (ElfIdentity){};
	return take_fd(fd);
}

const char *served_symbols_error(int error)
{
	switch (error) {
	case -ESTALE:
		return "the file is not the one that was recorded";
	case -ENODATA:
		return "the file has no build ID: it cannot be verified that it is the recorded "
		       "one";
	case -ENOTSUP:
		return "kernel code is not served";
	case -ENXIO:
		return "the code is not in a file: kernel modules and code made at run time are "
		       "not served";
	case -ENOEXEC:
	case -EINVAL:
		return "the file is not a program or library";
	case -ETIME:
		return "the time limit was reached";
	default:
		return strerror(-error);
	}
}

static struct rec_file *make_file(const ServedLib *lib, uint64_t base_svma)
{
	size_t length = (offsetof(struct rec_file, path) + strlen(lib->path) + 1 + 7) & ~7UL;
	struct rec_file *file = xcalloc(1, length);

	file->h = (struct record){
		.len = length, .kind = REC_FILE, .flags = is_vdso(lib) ? FILE_VDSO : 0};
	file->id = 1;
	file->build_id_len = lib->build_id_len;
	memcpy(file->build_id, lib->build_id, lib->build_id_len);
	file->base_svma = base_svma;
	strcpy(file->path, lib->path);
	return file;
}

/* The symbols arrive in the order of the targets. */
static int keep_symbol(void *user, const struct record *record)
{
	ServedSymbols *symbols = user;

	if (record->kind == REC_SYMBOL)
		*vec_push(&symbols->list) = memcpy(xmalloc(record->len), record, record->len);
	return 0;
}

static int resolve(const AddressSpaces *spaces, const SymbolTarget *targets, size_t count,
		   uint64_t deadline_ns, ServedSymbols *symbols)
{
	static const Invoker itself = {}; /* wallprof has dropped root's privileges already */
	_cleanup_(as_invoker_free) AsInvoker as;
	SymbolsSummary summary = {};
	SymbolsSink sink = {
		.open = symbols_open_by_path,
		.open_beside = symbols_open_beside_by_path,
		.open_named = symbols_open_named_by_path,
		.open_user = &as,
		.emit = keep_symbol,
		.user = symbols,
		.invoker = &itself,
		.no_debuginfod = true, /* the recording or export has asked debuginfod already */
		.deadline_ns = deadline_ns,
	};
	int error = as_invoker_prepare(&itself, &as);

	return error ? error : symbol_files_resolve(spaces, targets, count, &sink, &summary);
}

int served_symbols_resolve(ElfIdentifier *identifier, const ServedLib *lib,
			   const uint64_t *relative, size_t count, uint64_t deadline_ns,
			   ServedSymbols *ret_symbols)
{
	_cleanup_free_ SymbolTarget *targets = xcalloc(count + 1, sizeof(*targets));
	_cleanup_(address_spaces_freep) AddressSpaces *spaces = NULL;
	_cleanup_free_ struct rec_file *file = NULL;
	_cleanup_close_ int fd = -1;
	ElfIdentity identity;

	*ret_symbols = (ServedSymbols){};
	if (now_ns() > deadline_ns)
		return -ETIME;
	fd = served_symbols_open(identifier, lib, &identity);
	if (fd < 0)
		return fd;
	ret_symbols->base_svma = identity.base_svma;
	elf_identity_free(&identity);
	file = make_file(lib, ret_symbols->base_svma);
	spaces = address_spaces_new();
	address_spaces_add(spaces, &file->h);
	for (size_t i = 0; i < count; i++)
		targets[i] = (SymbolTarget){
			.file = 1, .svma = ret_symbols->base_svma + relative[i], .weight = 1};
	return resolve(spaces, targets, count, deadline_ns, ret_symbols);
}

void served_symbols_free(ServedSymbols *symbols)
{
	for (size_t i = 0; i < symbols->list.count; i++)
		free(symbols->list.items[i]);
	vec_free(&symbols->list);
}

const struct rec_symbol *served_symbols_find(const ServedSymbols *symbols, uint64_t relative)
{
	uint64_t address = symbols->base_svma + relative;
	size_t at = partition_point(middle, symbols->list.count,
				    symbols->list.items[middle]->address < address);

	return at < symbols->list.count && symbols->list.items[at]->address == address
		       ? symbols->list.items[at]
		       : NULL;
}
