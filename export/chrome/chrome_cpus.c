/* SPDX-License-Identifier: GPL-2.0-or-later */
/* chrome_cpus.c - which task had which CPU: a row for each CPU, with a slice for each run. */
#include "chrome_private.h"
#include "cpu_rows.h"

uint64_t chrome_cpu_runs_fit(const Timeline *timeline, uint64_t budget)
{
	CpuPlan plan;

	cpu_plan_fit(&plan, timeline, 2 * budget); /* two rows a run */
	return plan.fold_ns;
}

static void write_run(Chrome *chrome, uint32_t cpu, const CpuRun *run, uint64_t end_ns)
{
	_cleanup_free_ char *name = cpu_run_text(chrome->timeline, run->task);
	Json *json = &chrome->json;

	chrome_begin(chrome, "X", name, CHROME_CPUS_PID, CHROME_CPUS_TID + cpu);
	json_key_string(json, "cat", "CPU");
	chrome_key_time(chrome, run->start_ns);
	json_key_us(json, "dur", end_ns - run->start_ns);
	if (run->task != CPU_UNKNOWN) {
		chrome_begin_data(chrome);
		json_key_u64(json, "tid", chrome_task_tid(chrome, run->task));
		chrome_end_data(chrome);
	}
	json_end_object(json);
}

void chrome_write_cpus(Chrome *chrome)
{
	const Timeline *timeline = chrome->timeline;

	for (size_t c = 0; c < timeline->cpus.count; c++) {
		const Cpu *cpu = &timeline->cpus.items[c];

		for (size_t i = 0; i < cpu->runs.count; i++) {
			const CpuRun *run = &cpu->runs.items[i];
			uint64_t end_ns = cpu_run_end(timeline, cpu, i);

			if (run->task == CPU_IDLE || end_ns <= run->start_ns)
				continue;
			if (end_ns - run->start_ns < chrome->cpu_run_ns)
				chrome->cpu_runs_hidden++;
			else
				write_run(chrome, c, run, end_ns);
		}
	}
}
