/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "software_events.h"
#include "bpf_options.h"
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const SoftwareEvent *event, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = event->config,
		.sample_period = event->period,
	};

	return syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int software_event_attach_on(struct bpf_program *program, const SoftwareEvent *event, int cpu,
			     struct bpf_link **ret_link)
{
	BPF_OPTIONS(bpf_perf_event_opts, options);
	int fd = open_event(event, cpu), error;
	struct bpf_link *link;

	if (fd < 0)
		return -errno;
	options.bpf_cookie = event->cookie;
	link = bpf_program__attach_perf_event_opts(program, fd, &options);
	if (!link) {
		error = -errno;
		close(fd);
		return error;
	}
	*ret_link = link;
	return fd;
}

int software_event_attach(struct bpf_program *program, const SoftwareEvent *event, CpuRange cpus,
			  BpfLinks *links)
{
	int result = -ENODEV;

	for (size_t cpu = cpus.first; cpu < cpus.first + cpus.count; cpu++) {
		/* Every call that succeeds sets it; gcc 12 at -O3 does not see that. */
		struct bpf_link *link = NULL;
		int fd = software_event_attach_on(program, event, cpu, &link);

		if (fd == -ENODEV) /* the CPU is not online */
			continue;
		if (fd < 0)
			return fd;
		*vec_push(links) = link;
		result = 0;
	}
	return result;
}

void bpf_links_destroy(BpfLinks *links)
{
	for (size_t i = 0; i < links->count; i++)
		bpf_link__destroy(links->items[i]);
	vec_free(links);
}
