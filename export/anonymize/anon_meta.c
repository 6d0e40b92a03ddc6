/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anon_meta.h"
#include "anon_texts.h"

typedef enum MetaRule {
	META_KEPT,
	META_DROPPED, /* also what is not in the table */
	META_PATH,
	META_COMMAND,
	META_HOST,
} MetaRule;

/* All keys of docs/reference/capture-format.md. */
static const struct {
	const char *key;
	MetaRule rule;
} meta_rules[] = {
	{"version", META_KEPT},
	{"command", META_COMMAND},
	{"command_tid", META_KEPT},
	{"recorder_pid", META_KEPT},
	{"attached_pids", META_KEPT},
	{"attached_tids", META_KEPT},
	{"cgroup", META_PATH},
	{"kernel_threads", META_KEPT},
	{"kernel", META_KEPT},
	{"machine", META_KEPT},
	{"hostname", META_HOST},
	{"boot_id", META_DROPPED}, /* it identifies the machine */
	{"cpus", META_KEPT},
	{"cpus_online", META_KEPT},
	{"cpus_idle", META_KEPT},
	{"cpu_model", META_KEPT},
	{"memory", META_KEPT},
	{"stolen_at_start_ns", META_KEPT},
	{"stolen_at_end_ns", META_KEPT},
	{"clock", META_KEPT},
	{"hooks", META_KEPT},
	{"waking-context", META_KEPT},
	{"recording-cost", META_KEPT},
	{"strangers", META_KEPT},
	{"own-code", META_KEPT},
	{"args", META_KEPT},
	{"file-names", META_KEPT},
	{"budget", META_KEPT},
	{"frequency", META_KEPT},
	{"frequency_share", META_KEPT},
	{"frequency_changes", META_KEPT},
	{"tick_interrupt_ns", META_KEPT},
	{"ticks", META_KEPT},
	{"fault_source", META_KEPT},
	{"fault_threshold_ns", META_KEPT},
	{"waker_threshold_ns", META_KEPT},
	{"kernel_stacks", META_KEPT},
	{"stacks", META_KEPT},
	{"ring_size", META_KEPT},
	{"ring_cpus", META_KEPT},
	{"ring_groups", META_KEPT},
	{"cpu_limit_cgroup", META_PATH},
	{"cpu_limit_quota_us", META_KEPT},
	{"cpu_limit_period_us", META_KEPT},
	{"cpu_limit_throttled_ns", META_KEPT},
	{"flight_recorder_ns", META_KEPT},
	{"unwind_memory", META_KEPT},
};

static MetaRule meta_rule(const char *text, size_t key_length)
{
	for (size_t i = 0; i < ARRAY_LEN(meta_rules); i++)
		if (strlen(meta_rules[i].key) == key_length &&
		    !strncmp(meta_rules[i].key, text, key_length))
			return meta_rules[i].rule;
	return META_DROPPED;
}

char *anon_meta_replace(AnonNames *names, const char *text)
{
	size_t length = strcspn(text, "=");
	const char *value = text + length + (text[length] == '=');
	_cleanup_free_ char *other = NULL;

	switch (meta_rule(text, length)) {
	case META_KEPT:
		return xstrdup(text);
	case META_DROPPED:
		return NULL;
	case META_PATH:
		other = anon_paths_replace(names, value);
		break;
	case META_COMMAND:
		other = anon_texts_command(names, value);
		break;
	case META_HOST:
		anon_names_person(names, value);
		other = anon_names_word(names, value, ANON_HOST);
		break;
	}
	return xasprintf("%.*s=%s", (int)length, text, other);
}
