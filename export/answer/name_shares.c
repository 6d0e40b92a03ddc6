/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "name_shares.h"
#include "text.h"

#define NAMES_MOST   3
#define REMARK_SHARE 0.05 /* a smaller part of the time is not worth a remark */

void name_shares_add(NameShares *shares, const char *name, uint64_t ns)
{
	uint32_t number = strings_intern(&shares->names, name);

	if (number == shares->ns.count)
		*vec_push(&shares->ns) = 0;
	shares->ns.items[number] += ns;
	shares->all_ns += ns;
}

/* Returns the name with the most time that has less than the one before, or follows it in order. */
static size_t next_largest(const NameShares *shares, size_t before)
{
	const uint64_t *ns = shares->ns.items;
	size_t next = shares->ns.count;

	for (size_t i = 0; i < shares->ns.count; i++) {
		if (before < shares->ns.count &&
		    (ns[i] > ns[before] || (ns[i] == ns[before] && i <= before)))
			continue;
		if (next == shares->ns.count || ns[i] > ns[next])
			next = i;
	}
	return next;
}

char *name_shares_text(const NameShares *shares, size_t *ret_others)
{
	size_t count = shares->ns.count, at = count, listed = 0;
	char *text = NULL;

	for (; listed < NAMES_MOST; listed++) {
		_cleanup_free_ char *name = NULL, *before = text;
		double share;

		at = next_largest(shares, at);
		share = at < count ? (double)shares->ns.items[at] / MAX(shares->all_ns, 1ul) : 0;
		if (share < REMARK_SHARE) {
			before = NULL; /* it is the whole text */
			break;
		}
		name = text_printable(strings_get(&shares->names, at));
		text = xasprintf("%s%s%s %.0f %%", before ? before : "", before ? ", " : "", name,
				 100 * share);
	}
	*ret_others = count - listed;
	return text;
}

void name_shares_free(NameShares *shares)
{
	strings_free(&shares->names);
	vec_free(&shares->ns);
}
