/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dwarf_names.c - looks up many addresses at once: each unit that contains some of them is walked
 * once.
 *
 * libdw's own queries walk a unit from its root for each address, and find units by .debug_aranges,
 * which clang does not write. Here the units' ranges are read first; then the walk of a unit
 * descends only where addresses are, and takes them along.
 */
#include "dwarf_names.h"
#include "demangle.h"
#include "dwarf_sections.h"
#include "dwarf_split.h"
#include "dwarf_units.h"
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define NONE UINT32_MAX
/* DW_LANG_Ada2005 and Ada2012: DWARF 5 lacks them, dwarfstd.org numbered them later. */
#define ADA_2005 0x2e
#define ADA_2012 0x2f
/* Compilers do not nest scopes deeper than this; the walk is recursive. */
#define DEPTH_MAX 200
/* The number of DIEs that one can be made from, as in libdw. */
#define ORIGINS_MAX 16
/* libdw keeps all lines that it has decoded, so it is started again after so many. */
#define LINES_MAX 400000

/* An address, and the unit that contains it. */
typedef struct Located {
	uint32_t unit, address;
} Located;

/* A function, or an inlined call of one. */
typedef struct Scope {
	uint32_t outer; /* the scope that it is inlined into, or NONE */
	uint32_t name;
	uint32_t call_line, call_source;
} Scope;

typedef struct Finder {
	Elf *elf;
	Dwarf *dwarf, *alt;
	const uint64_t *addresses;
	size_t count;
	DwarfNames *names;
	DwarfSections sections;
	DwarfUnits units;
	VEC(Located) located; /* sorted by unit, then by address */
	DwarfSplit split;
	/* The present unit's: */
	Dwarf_Die unit; /* in the program: if its entries are elsewhere, the skeleton */
	bool is_ada;
	bool in_split;	      /* its entries are in a .dwo or .dwp file */
	DwarfExtents extents; /* of the present DIE */
	Dwarf_Files *files;
	VEC(Scope) scopes;
	VEC(uint32_t) scope_of; /* by address: the innermost one so far, or NONE */
	VEC(uint32_t) picked;	/* addresses that a DIE contains; a stack that follows the walk */
	Map origins;		/* DIE that names a function -> name, within this unit */
	size_t lines;		/* decoded since libdw was started */
} Finder;

/* Some of the addresses, ascending: finder->picked from first to end. */
typedef struct Subset {
	size_t first, end;
} Subset;

static void count_missing(DwarfNames *names, enum dwarf_missing kind, const char *name)
{
	DwarfMissing *missing = &names->missing[kind];

	if (missing->count++ == 0)
		snprintf(missing->name, sizeof(missing->name), "%s", name ? name : "");
}

/* ---- units ----------------------------------------------------------------- */

static int compare_located(const void *a, const void *b)
{
	const Located *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static void locate(Finder *finder)
{
	for (size_t i = 0; i < finder->count; i++) {
		uint32_t unit = dwarf_units_find(&finder->units, finder->addresses[i]);

		if (unit != DWARF_UNIT_NONE)
			*vec_push(&finder->located) = (Located){unit, i};
	}
	if (finder->located.count)
		qsort(finder->located.items, finder->located.count, sizeof(Located),
		      compare_located);
}

/* ---- names ----------------------------------------------------------------- */

static uint32_t intern(Finder *finder, const char *s)
{
	s = dwarf_sections_string(&finder->sections, s);
	return strings_intern(&finder->names->strings, s ? s : "");
}

/*
 * libdw may leave paths relative to the compiler's working folder. In distribution packages that
 * folder is relative itself ("./malloc"), and the path stays so.
 */
static uint32_t intern_path(Finder *finder, const char *path)
{
	Dwarf_Attribute attribute;
	const char *folder = NULL;
	_cleanup_free_ char *whole = NULL;

	path = dwarf_sections_string(&finder->sections, path);
	if (path && *path && *path != '/' && dwarf_attr(&finder->unit, DW_AT_comp_dir, &attribute))
		folder = dwarf_sections_string(&finder->sections, dwarf_formstring(&attribute));
	if (!folder || !*folder)
		return intern(finder, path);
	whole = xasprintf("%s/%s", folder, path);
	return intern(finder, whole);
}

/*
 * Returns the DIE that this one was made from. A reference to another unit of a split file counts
 * only if it is known where that unit is: otherwise it would lead to anything.
 */
static bool follow(const Finder *finder, Dwarf_Die *die, unsigned int link, Dwarf_Die *ret_die)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, link, &attribute) &&
	       (!finder->in_split || attribute.form != DW_FORM_ref_addr ||
		finder->split.is_whole) &&
	       dwarf_formref_die(&attribute, ret_die);
}

/* Finds an attribute of the DIE or of those that it was made from, as dwarf_attr_integrate(). */
static bool find_attribute(const Finder *finder, const Dwarf_Die *die, unsigned int name,
			   Dwarf_Attribute *ret_attribute)
{
	Dwarf_Die at = *die, from;

	for (unsigned i = 0; i < ORIGINS_MAX; i++) {
		if (dwarf_attr(&at, name, ret_attribute))
			return true;
		if (!follow(finder, &at, DW_AT_abstract_origin, &from) &&
		    !follow(finder, &at, DW_AT_specification, &from))
			return false;
		at = from;
	}
	return false;
}

/* Returns a string of the DIE or of the one that it was made from, or NULL if it has none. */
static const char *name_of(const Finder *finder, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	const char *text;

	if (!find_attribute(finder, die, name, &attribute))
		return NULL;
	text = finder->in_split
		       ? dwarf_split_string(&finder->split, &attribute)
		       : dwarf_sections_string(&finder->sections, dwarf_formstring(&attribute));
	return text && *text ? text : NULL;
}

static const char *linkage_name(const Finder *finder, Dwarf_Die *die)
{
	const char *name = name_of(finder, die, DW_AT_linkage_name);

	return name ? name : name_of(finder, die, DW_AT_MIPS_linkage_name);
}

static uint32_t read_name(Finder *finder, Dwarf_Die *die)
{
	const char *mangled = linkage_name(finder, die);
	_cleanup_free_ char *readable = mangled && !finder->is_ada ? demangle(mangled) : NULL;

	if (!mangled)
		mangled = name_of(finder, die, DW_AT_name);
	if (mangled && finder->is_ada)
		readable = demangle_ada(mangled);
	return strings_intern(&finder->names->strings, readable	 ? readable
						       : mangled ? mangled
								 : "");
}

/* Inlined calls of one function share its name, which is read once. */
static uint32_t function_name(Finder *finder, Dwarf_Die *die)
{
	Dwarf_Die origin;
	uint64_t key;
	uint32_t name;

	if (!follow(finder, die, DW_AT_abstract_origin, &origin))
		return read_name(finder, die);
	key = (uint64_t)(uintptr_t)origin.addr;
	name = map_get(&finder->origins, key);
	if (name == MAP_NONE) {
		name = read_name(finder, &origin);
		map_set(&finder->origins, key, name);
	}
	return name;
}

static uint32_t attribute_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) ||
	    value > INT32_MAX)
		return 0;
	return value;
}

static uint32_t call_source(Finder *finder, Dwarf_Die *call)
{
	Dwarf_Attribute attribute;
	Dwarf_Word file;

	if (!finder->files || !dwarf_attr(call, DW_AT_call_file, &attribute) ||
	    dwarf_formudata(&attribute, &file))
		return intern(finder, "");
	return intern_path(finder, dwarf_filesrc(finder->files, file, NULL, NULL));
}

/* ---- the walk --------------------------------------------------------------- */

/* Returns the first of the subset that is not below address. */
static size_t lower_bound(const Finder *finder, Subset subset, uint64_t address)
{
	const uint32_t *picked = finder->picked.items + subset.first;

	return subset.first + partition_point(middle, subset.end - subset.first,
					      finder->addresses[picked[middle]] < address);
}

static int compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void read_extents(Finder *finder, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t position = 0;

	if (finder->in_split) {
		dwarf_split_ranges(&finder->split, die, &finder->extents);
		return;
	}
	finder->extents.count = 0;
	while ((position = dwarf_ranges(die, position, &base, &start, &end)) > 0)
		*vec_push(&finder->extents) = (DwarfExtent){start, end};
}

/*
 * Pushes the addresses of the subset that the DIE's ranges contain. Returns whether it has ranges.
 */
static bool pick(Finder *finder, Dwarf_Die *die, Subset subset, bool function, Subset *ret_inside)
{
	size_t ranges;

	read_extents(finder, die);
	ranges = finder->extents.count;
	ret_inside->first = finder->picked.count;
	for (size_t n = 0; n < ranges; n++) {
		uint64_t start = finder->extents.items[n].start;
		uint64_t end = finder->extents.items[n].end;
		size_t i = lower_bound(finder, subset, start);

		if (!start) /* the linker dropped it */
			continue;
		for (; i < subset.end; i++) {
			uint32_t address = finder->picked.items[i];

			if (finder->addresses[address] >= end)
				break;
			*vec_push(&finder->picked) = address;
			if (function) {
				finder->names->answers.items[address].function = start;
				finder->names->answers.items[address].size = end - start;
			}
		}
	}
	ret_inside->end = finder->picked.count;
	if (ranges > 1 && ret_inside->end > ret_inside->first)
		qsort(finder->picked.items + ret_inside->first, ret_inside->end - ret_inside->first,
		      sizeof(uint32_t), compare_numbers);
	return ranges > 0;
}

static void visit_children(Finder *finder, Dwarf_Die *parent, Subset subset, uint32_t outer,
			   unsigned depth);

static void visit_function(Finder *finder, Dwarf_Die *die, Subset subset, uint32_t outer,
			   unsigned depth)
{
	bool is_inlined = outer != NONE;
	Subset inside;
	uint32_t scope;

	pick(finder, die, subset, !is_inlined, &inside);
	if (inside.first == inside.end)
		return;
	scope = finder->scopes.count;
	*vec_push(&finder->scopes) = (Scope){.outer = outer, .name = function_name(finder, die)};
	if (is_inlined) {
		finder->scopes.items[scope].call_line = attribute_number(die, DW_AT_call_line);
		finder->scopes.items[scope].call_source = call_source(finder, die);
	}
	for (size_t i = inside.first; i < inside.end; i++)
		finder->scope_of.items[finder->picked.items[i]] = scope;
	visit_children(finder, die, inside, scope, depth + 1);
	finder->picked.count = inside.first;
}

static void visit_block(Finder *finder, Dwarf_Die *die, Subset subset, uint32_t outer,
			unsigned depth)
{
	Subset inside;

	if (!pick(finder, die, subset, /* function= */ false, &inside))
		inside = subset; /* a block without a range has that of its parent */
	if (inside.first < inside.end)
		visit_children(finder, die, inside, outer, depth + 1);
	finder->picked.count = MIN(finder->picked.count, MAX(inside.first, subset.end));
}

static void visit(Finder *finder, Dwarf_Die *die, Subset subset, uint32_t outer, unsigned depth)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_subprogram: /* also a nested one */
		visit_function(finder, die, subset, NONE, depth);
		break;
	case DW_TAG_inlined_subroutine:
		if (outer != NONE)
			visit_function(finder, die, subset, outer, depth);
		break;
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		visit_block(finder, die, subset, outer, depth);
		break;
	case DW_TAG_namespace:
	case DW_TAG_module:
		visit_children(finder, die, subset, outer, depth + 1);
		break;
	}
}

static void visit_children(Finder *finder, Dwarf_Die *parent, Subset subset, uint32_t outer,
			   unsigned depth)
{
	Dwarf_Die die;
	void *position;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		position = die.addr;
		visit(finder, &die, subset, outer, depth);
		/* A sibling that lies before its predecessor would make this endless. */
	} while (dwarf_siblingof(&die, &die) == 0 && die.addr > position);
}

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
		return true;
	default:
		return false;
	}
}

static void find_nested(Finder *finder, Dwarf_Die *parent, Subset lost, unsigned depth)
{
	Dwarf_Die die;
	void *position;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		position = die.addr;
		if (tag == DW_TAG_subprogram)
			visit_function(finder, &die, lost, NONE, depth);
		if (may_hold_functions(tag))
			find_nested(finder, &die, lost, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0 && die.addr > position);
}

/*
 * A function that is defined inside of another one or of a type (GNU C, Ada, methods of local
 * classes, all methods of D) has code elsewhere, where the walk did not look: another walk searches
 * for the addresses that are left.
 */
static void visit_nested(Finder *finder, Dwarf_Die *unit, size_t count)
{
	Subset lost = {.first = finder->picked.count};

	for (size_t i = 0; i < count; i++) {
		uint32_t address = finder->picked.items[i];

		if (finder->scope_of.items[address] == NONE)
			*vec_push(&finder->picked) = address;
	}
	lost.end = finder->picked.count;
	if (lost.first < lost.end)
		find_nested(finder, unit, lost, 0);
}

/* ---- answers ---------------------------------------------------------------- */

static void answer(Finder *finder, uint32_t address)
{
	DwarfNames *names = finder->names;
	DwarfAnswer *answer = &names->answers.items[address];
	Dwarf_Line *row = dwarf_getsrc_die(&finder->unit, finder->addresses[address]);
	uint32_t scope = finder->scope_of.items[address], source = intern(finder, "");
	int line = 0;

	if (row) {
		dwarf_lineno(row, &line);
		source = intern_path(finder, dwarf_linesrc(row, NULL, NULL));
	}
	answer->is_ada = finder->is_ada;
	answer->has_function = scope != NONE;
	if (scope == NONE && line <= 0)
		return;
	answer->first = names->frames.count;
	for (uint32_t i = scope; i != NONE; i = finder->scopes.items[i].outer)
		answer->count++;
	answer->count = MAX(answer->count, 1u);
	for (uint32_t i = 0; i < answer->count; i++)
		(void)vec_push(&names->frames);
	/*
	 * This begins with the innermost one, whose line is in the line table; the lines of calls
	 * follow.
	 */
	for (uint32_t i = answer->count; i-- > 0;) {
		names->frames.items[answer->first + i] = (DwarfFrame){
			.name = scope == NONE ? intern(finder, "")
					      : finder->scopes.items[scope].name,
			.source = source,
			.line = MAX(line, 0),
		};
		if (scope == NONE)
			break;
		line = finder->scopes.items[scope].call_line;
		source = finder->scopes.items[scope].call_source;
		scope = finder->scopes.items[scope].outer;
	}
}

static void begin_libdw(Finder *finder)
{
	if (finder->dwarf)
		dwarf_end(finder->dwarf);
	finder->dwarf = dwarf_begin_elf(finder->elf, DWARF_C_READ, NULL);
	if (finder->dwarf && finder->alt)
		dwarf_setalt(finder->dwarf, finder->alt);
	finder->lines = 0;
}

static bool is_ada(int language)
{
	return language == DW_LANG_Ada83 || language == DW_LANG_Ada95 || language == ADA_2005 ||
	       language == ADA_2012;
}

/* Returns the DIE that has the unit's functions below it. */
static Dwarf_Die open_entries(Finder *finder)
{
	static const enum dwarf_missing missing[] = {
		[DWARF_SPLIT_NO_FILE] = DWARF_NO_SPLIT_FILE,
		[DWARF_SPLIT_OTHER_FILE] = DWARF_OTHER_SPLIT_FILE,
		[DWARF_SPLIT_OTHER_PACKAGE] = DWARF_OTHER_PACKAGE,
		[DWARF_SPLIT_DAMAGED_PACKAGE] = DWARF_DAMAGED_PACKAGE,
	};
	const char *name;
	Dwarf_Die entries;
	enum dwarf_split_result result =
		dwarf_split_open(&finder->split, &finder->unit, &entries, &name);

	finder->in_split = result == DWARF_SPLIT_OPEN;
	if (result >= DWARF_SPLIT_NO_FILE)
		count_missing(finder->names, missing[result], name);
	return finder->in_split ? entries : finder->unit;
}

static void find_in_unit(Finder *finder, const DwarfUnit *unit, const Located *located,
			 size_t count)
{
	Subset all = {0, count};
	Dwarf_Lines *lines;
	size_t line_count = 0;
	Dwarf_Die entries;

	if (!finder->dwarf || !dwarf_offdie(finder->dwarf, unit->die, &finder->unit))
		return;
	finder->split.unit_begin = unit->begin;
	entries = open_entries(finder);
	finder->is_ada = is_ada(dwarf_srclang(&entries));
	finder->picked.count = finder->scopes.count = 0;
	map_free(&finder->origins);
	for (size_t i = 0; i < count; i++)
		*vec_push(&finder->picked) = located[i].address;
	if (dwarf_getsrcfiles(&finder->unit, &finder->files, NULL))
		finder->files = NULL;
	visit_children(finder, &entries, all, NONE, 0);
	visit_nested(finder, &entries, count);
	for (size_t i = 0; i < count; i++)
		answer(finder, located[i].address);
	if (!dwarf_getsrclines(&finder->unit, &lines, &line_count))
		finder->lines += line_count;
	if (finder->lines > LINES_MAX)
		begin_libdw(finder);
}

static void find_all(Finder *finder)
{
	const Located *located = finder->located.items;

	for (size_t i = 0, next; i < finder->located.count; i = next) {
		for (next = i + 1; next < finder->located.count; next++)
			if (located[next].unit != located[i].unit)
				break;
		find_in_unit(finder, &finder->units.units.items[located[i].unit], located + i,
			     next - i);
	}
}

void dwarf_names_find(ElfMap *file, ElfMap *dwz, const uint64_t *addresses, size_t count,
		      const DwarfHost *host, DwarfNames *ret_names)
{
	Finder finder = {
		.elf = file->elf,
		.addresses = addresses,
		.count = count,
		.names = ret_names,
		.split = {.file = file, .find = host->find, .user = host->user},
	};

	*ret_names = (DwarfNames){};
	for (size_t i = 0; i < count; i++) {
		*vec_push(&ret_names->answers) = (DwarfAnswer){};
		*vec_push(&finder.scope_of) = NONE;
	}
	finder.split.sections = &finder.sections;
	dwarf_sections_prepare(&finder.sections, file);
	if (dwz->elf)
		dwarf_sections_prepare(&finder.sections, dwz);
	finder.alt = dwz->elf ? dwarf_begin_elf(dwz->elf, DWARF_C_READ, NULL) : NULL;
	begin_libdw(&finder);
	for (unsigned i = 0; i < finder.sections.damaged; i++)
		count_missing(ret_names, DWARF_DAMAGED_SECTION, "");
	if (!finder.dwarf || !dwarf_units_read(&finder.units, finder.elf, finder.dwarf))
		count_missing(ret_names, DWARF_UNREADABLE, dwarf_errmsg(-1));
	locate(&finder);
	find_all(&finder);
	dwarf_split_close(&finder.split);
	if (finder.dwarf)
		dwarf_end(finder.dwarf);
	if (finder.alt)
		dwarf_end(finder.alt);
	dwarf_sections_free(&finder.sections);
	dwarf_units_free(&finder.units);
	vec_free(&finder.located);
	vec_free(&finder.scopes);
	vec_free(&finder.scope_of);
	vec_free(&finder.picked);
	vec_free(&finder.extents);
	map_free(&finder.origins);
}

void dwarf_names_free(DwarfNames *names)
{
	vec_free(&names->answers);
	vec_free(&names->frames);
	strings_free(&names->strings);
}
