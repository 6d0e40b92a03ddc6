/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anon_names.h"
#include "records.h"
#include <ctype.h>

static const char *const prefixes[ANON_ROLES] = {
	[ANON_FILE] = "file",	  [ANON_FOLDER] = "dir", [ANON_THREAD] = "thread",
	[ANON_SOCKET] = "socket", [ANON_HOST] = "host",	 [ANON_ARGUMENT] = "arg",
};

void anon_names_free(AnonNames *names)
{
	strings_free(&names->words);
	vec_free(&names->of_words);
	strings_free(&names->cuts);
	vec_free(&names->words_of_cuts);
	strings_free(&names->system);
	strings_free(&names->people);
}

/* ---- names that are kept ------------------------------------------------------------------- */

/* A '#' in a pattern is for numbers with points between them, a '%' for hexadecimal digits. */
#define NUMBERS_MAX 12
#define HEX_MAX	    40

/*
 * Names of libraries and programs by which rules of the analysis recognize a run-time system, and
 * programs whose arguments are shown in their own way (export/output/args.c). They are public, so a
 * copy in a folder of the user's keeps its name, too.
 */
static const char *const programs[] = {
	"libc.so#",
	"libc-#.so",
	"libpthread.so#",
	"libpthread-#.so",
	"libm.so#",
	"libdl.so#",
	"librt.so#",
	"librt-#.so",
	"libanl.so#",
	"libgcc_s.so#",
	"libgcc_s-#.so#",
	"libstdc++.so#",
	"libc++.so#",
	"libc++abi.so#",
	"libstd-%.so",
	"ld-linux.so#",
	"ld-#.so",
	"ld-linux-x86-64.so#",
	"ld-musl-x86_64.so#",
	"ld-musl-i386.so#",
	"libc.musl-x86_64.so#",
	"ld-uClibc.so#",
	"ld-uClibc-#.so",
	"ld64-uClibc.so#",
	"libuClibc-#.so",
	"libpython#.so#",
	"libpython#t.so#",
	"libjvm.so",
	"libgomp.so#",
	"libomp.so#",
	"python#",
	"python#t",
	"pypy#",
	"node",
	"nodejs",
	"java",
	"perl#",
	"ruby#",
	"php#",
	"lua#",
	"Rscript",
	"sh",
	"bash",
	"dash",
	"zsh",
	"gcc",
	"g++",
	"clang",
	"clang++",
	"cc",
	"c++",
	"cc1",
	"cc1plus",
	"ld",
	"as",
	"rustc",
	"go",
	"make",
	"ninja",
	"__init__",
	"__main__",
};

/* Names that the kernel makes: devices, its own worker threads, cgroups of systemd, perf's maps. */
static const char *const kernel_names[] = {
	"sda#",		"sd@",	      "sd@#",	    "hd@",	  "hd@#",	"vd@",
	"vd@#",		"xvd@",	      "xvd@#",	    "nvme#n#",	  "nvme#n#p#",	"mmcblk#",
	"mmcblk#p#",	"loop#",      "loop#p#",    "dm-#",	  "md#",	"md#p#",
	"zram#",	"ram#",	      "nbd#",	    "sr#",	  "iou-wrk-#",	"iou-sqp-#",
	"system.slice", "user.slice", "init.scope", "perf-#.map", "jit-#.dump",
};

/* Returns how many bytes at the text are numbers with points between them. */
static size_t numbers_length(const char *text)
{
	size_t length = strspn(text, "0123456789.");

	while (length > 0 && text[length - 1] == '.')
		length--;
	return length <= NUMBERS_MAX ? length : 0;
}

static bool matches(const char *text, const char *pattern)
{
	if (*text != *pattern) /* no pattern begins with a wildcard */
		return false;
	for (; *pattern; pattern++) {
		size_t length;

		if (*pattern == '#') {
			text += numbers_length(text);
		} else if (*pattern == '%') {
			length = strspn(text, "0123456789abcdef");
			if (length == 0 || length > HEX_MAX)
				return false;
			text += length;
		} else if (*pattern == '@') {
			/* The letters of a disk: sda to sdzz. */
			length = strspn(text, "abcdefghijklmnopqrstuvwxyz");
			if (length == 0 || length > 2)
				return false;
			text += length;
		} else if (*text++ != *pattern) {
			return false;
		}
	}
	return !*text;
}

bool anon_names_is_well_known(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		if (matches(name, programs[i]))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(kernel_names); i++)
		if (matches(name, kernel_names[i]))
			return true;
	return false;
}

bool anon_names_is_replacement(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t length = strlen(prefixes[i]), digits;

		if (strncmp(name, prefixes[i], length) != 0)
			continue;
		digits = strspn(name + length, "0123456789");
		if (digits > 0 && (!name[length + digits] || name[length + digits] == '.'))
			return true;
	}
	return false;
}

void anon_names_keep(AnonNames *names, const char *name)
{
	if (!names->is_learning || !*name || anon_names_is_replacement(name))
		return;
	strings_intern(&names->system, name);
	if (strlen(name) >= COMM_LEN) {
		_cleanup_free_ char *cut = xstrndup(name, COMM_LEN - 1);

		strings_intern(&names->system, cut);
	}
}

void anon_names_person(AnonNames *names, const char *name)
{
	if (names->is_learning && *name)
		strings_intern(&names->people, name);
}

bool anon_names_is_person(const AnonNames *names, const char *name)
{
	return strings_find(&names->people, name) != MAP_NONE;
}

static bool is_kept(const AnonNames *names, const char *name)
{
	return strings_find(&names->system, name) != MAP_NONE || anon_names_is_well_known(name);
}

/* ---- extensions ---------------------------------------------------------------------------- */

/* One that is not listed may be a name itself. */
static const char *const extensions[] = {
	".a",	   ".asm",     ".bak",	".bin",	  ".bz2",   ".c",     ".cache", ".cc",	 ".cfg",
	".cjs",	   ".class",   ".conf", ".cpp",	  ".cs",    ".css",   ".csv",	".cu",	 ".cxx",
	".dat",	   ".data",    ".db",	".dll",	  ".dump",  ".dwo",   ".dwp",	".exe",	 ".f90",
	".gif",	   ".go",      ".gz",	".h",	  ".hh",    ".hpp",   ".hs",	".htm",	 ".html",
	".hxx",	   ".idx",     ".img",	".inc",	  ".index", ".ini",   ".ipp",	".iso",	 ".jar",
	".java",   ".jpg",     ".js",	".json",  ".ko",    ".lock",  ".log",	".lua",	 ".map",
	".md",	   ".mjs",     ".ml",	".mo",	  ".node",  ".npy",   ".o",	".pack", ".pdf",
	".php",	   ".pid",     ".pl",	".pm",	  ".png",   ".py",    ".pyc",	".pyx",	 ".rb",
	".rs",	   ".s",       ".S",	".scope", ".sh",    ".slice", ".so",	".sock", ".socket",
	".sqlite", ".service", ".svg",	".swift", ".tar",   ".tmp",   ".toml",	".ts",	 ".txt",
	".wal",	   ".wasm",    ".xml",	".xz",	  ".yaml",  ".yml",   ".zig",	".zip",	 ".zst",
};

static bool is_extension(const char *text)
{
	for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
		if (!strcmp(text, extensions[i]))
			return true;
	return false;
}

/* Returns how many bytes of "libx.so.1.2" precede ".so.1.2", or 0. */
static size_t library_stem(const char *name)
{
	const char *found = NULL;

	for (const char *at = name; (at = strstr(at, ".so")); at++)
		if (matches(at, ".so#"))
			found = at;
	return found ? found - name : 0;
}

/* Returns how many bytes of the name precede its extension, of which there may be two (".tar.gz").
 */
static size_t stem_length(const char *name)
{
	_cleanup_free_ char *stem = xstrdup(name);
	size_t length = library_stem(name);

	if (length > 0)
		return length;
	for (int i = 0; i < 2; i++) {
		char *dot = strrchr(stem, '.');

		if (!dot || dot == stem || !is_extension(dot))
			break;
		*dot = '\0';
	}
	return strlen(stem);
}

/* ---- replacements -------------------------------------------------------------------------- */

static uint32_t find_word(AnonNames *names, const char *word, enum anon_role role)
{
	uint32_t index = strings_intern(&names->words, word);

	if (index == names->of_words.count)
		*vec_push(&names->of_words) = (AnonName){.role = role};
	if (names->of_words.items[index].number == 0)
		names->of_words.items[index].role = MIN(names->of_words.items[index].role, role);
	return index;
}

static uint32_t number_of(AnonNames *names, uint32_t index)
{
	AnonName *name = &names->of_words.items[index];

	if (names->is_learning)
		return 0;
	if (name->number == 0)
		name->number = ++names->numbered[name->role];
	names->replaced[name->role] += !name->is_used;
	name->is_used = true;
	return name->number;
}

void anon_names_learned(AnonNames *names)
{
	for (size_t i = 0; i < names->of_words.count; i++) {
		AnonName *name = &names->of_words.items[i];

		name->number = ++names->numbered[name->role];
	}
	names->is_learning = false;
}

static char *replacement(AnonNames *names, uint32_t index)
{
	uint32_t number = number_of(names, index);

	return number == 0 ? xstrdup("")
			   : xasprintf("%s%u", prefixes[names->of_words.items[index].role], number);
}

uint32_t anon_names_number(AnonNames *names, const char *word, enum anon_role role)
{
	return number_of(names, find_word(names, word, role));
}

char *anon_names_word(AnonNames *names, const char *word, enum anon_role role)
{
	return replacement(names, find_word(names, word, role));
}

/* Learns by which name a thread is called that executes the file. */
static void learn_cut(AnonNames *names, const char *name, uint32_t word)
{
	_cleanup_free_ char *cut = xstrndup(name, COMM_LEN - 1);

	if (strlen(name) < COMM_LEN)
		return;
	if (strings_intern(&names->cuts, cut) == names->words_of_cuts.count)
		*vec_push(&names->words_of_cuts) = word;
}

char *anon_names_part(AnonNames *names, const char *name, enum anon_role role)
{
	size_t length;
	uint32_t word;

	if (!*name || !strcmp(name, ".") || !strcmp(name, "..") || is_kept(names, name))
		return xstrdup(name);
	length = stem_length(name);

	_cleanup_free_ char *stem = xstrndup(name, length), *text = NULL;

	word = find_word(names, stem, role);
	if (names->is_learning && role == ANON_FILE)
		learn_cut(names, name, word);
	text = replacement(names, word);
	return xasprintf("%s%s", text, name + length);
}

char *anon_names_comm(AnonNames *names, const char *comm)
{
	uint32_t cut = strlen(comm) == COMM_LEN - 1 ? strings_find(&names->cuts, comm) : MAP_NONE;

	if (cut != MAP_NONE && !is_kept(names, comm))
		return replacement(names, names->words_of_cuts.items[cut]);
	return anon_names_part(names, comm, ANON_THREAD);
}

/* Returns whether the text begins like an address: "192.168.", "fe80::1", "2001:db8:0". */
static bool begins_like_address(const char *text)
{
	size_t digits = strspn(text, "0123456789"), hex = strspn(text, "0123456789abcdef:");
	size_t colons = 0;

	for (size_t i = 0; i < hex; i++)
		colons += text[i] == ':';
	return colons >= 2 || (digits > 0 && digits <= 3 && text[digits] == '.' &&
			       isdigit((unsigned char)text[digits + 1]));
}

char *anon_names_kernel_comm(AnonNames *names, const char *comm)
{
	/*
	 * Of clusters' resources; of interfaces, which a user names: WireGuard's queue has a thread
	 * of its own (drivers/net/wireguard/device.c), as a device with threaded NAPI has.
	 */
	static const char *const begins[] = {"dlm_",  "drbd_",	  "gfs2_", "o2hb-",
					     "ocfs2", "wg-crypt", "napi/"};
	bool is_users = begins_like_address(comm);

	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		is_users |= !strncmp(comm, begins[i], strlen(begins[i]));
	return is_users ? anon_names_word(names, comm, ANON_THREAD) : xstrdup(comm);
}
