/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault.bpf.c - page faults of targets.
 *
 * The preferred hooks are the call of handle_mm_fault() and its return. Only the tracepoints show
 * what was there before, so they are used as well if faults that did not sleep are recorded. Where
 * the kernel does not support fentry, the tracepoints page_fault_user and page_fault_kernel show
 * that a fault begins, and the software events that the kernel raises in mm_account_fault() show
 * its end. The differences: faults that the kernel makes without an instruction (get_user_pages)
 * are seen only by the functions, and faults that end in a signal or an error have no end event.
 *
 * A task is in one fault at a time. The slot of its fault is found by the low bits of its tid.
 */
#include "fault.bpf.h"
#include "cost.bpf.h"

static __always_inline bool exceeds_threshold(const struct open_fault *open, u64 ns)
{
	return setting_fault_threshold_ns != FAULT_THRESHOLD_NONE &&
	       ns - open->start_ns >= setting_fault_threshold_ns;
}

/* Begins a fault of the task; NULL if it has no slot. */
static __always_inline struct open_fault *fault_begin(struct task_struct *task, u64 address, u64 ns)
{
	struct open_fault *open = fault_slot(task);

	if (!open)
		return NULL;
	open->tid = task->pid;
	open->address = address;
	open->start_ns = ns;
	open->switches = task->nvcsw;
	open->raised = open->retried = open->reported = open->vma_lock = false;
	open->page = PAGE_UNKNOWN;
	return open;
}

struct fault_mapping {
	struct rec_fault *record;
	u64 address;
};

static long read_faulted(struct task_struct *task, struct vm_area_struct *vma,
			 struct fault_mapping *mapping)
{
	describe_memory(mapping->record, vma, mapping->address);
	return 0;
}

/*
 * Describes the mapping at an address. The task holds the lock of the mappings for reading, or has
 * released it; in the second case the mapping is not found if a writer waits for the lock.
 */
static __always_inline void describe_mapping_at(struct rec_fault *record, u64 address)
{
	struct fault_mapping mapping = {.record = record, .address = address};

	bpf_find_vma(bpf_get_current_task_btf(), address, read_faulted, &mapping, 0);
}

/* ---- by the function ------------------------------------------------------------- */

/*
 * Whether this call is a retry of a fault that released the lock, or the first call for a fault
 * whose tracepoint has run. A signal may prevent the retry (fault_signal_pending()); then the
 * instruction faults once more, at the same address.
 */
static __always_inline bool is_retry(const struct open_fault *open, u64 address, unsigned int flags,
				     struct pt_regs *regs)
{
	if (open->address != address)
		return false;
	if (!open->retried)
		return regs;
	return flags & FAULT_FLAG_TRIED || (open->vma_lock && !(flags & FAULT_FLAG_VMA_LOCK));
}

SEC("fentry/handle_mm_fault")
int BPF_PROG(on_fault_begin, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
	     struct pt_regs *regs)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_fault *open;
	u64 ns;

	if (!is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	open = fault_slot(task);
	if (!open)
		return 0;
	if (open->tid == (u32)task->pid && (open->retried || open->raised)) {
		if (is_retry(open, address, flags, regs)) {
			open->vma_lock = !!(flags & FAULT_FLAG_VMA_LOCK);
			return 0;
		}
		__sync_fetch_and_add(&fault_counts.open, 1);
	}
	fault_begin(task, address, ns);
	open->vma_lock = !!(flags & FAULT_FLAG_VMA_LOCK);
	cost_add(ns);
	return 0;
}

/* What was there before a fault that an instruction raised. */
static __always_inline u8 page_from_code(u32 error_code)
{
	return error_code & X86_PF_PROT ? PAGE_PROTECTED : PAGE_ABSENT;
}

static __always_inline void emit_returned(struct vm_area_struct *vma, struct open_fault *open,
					  unsigned int flags, struct pt_regs *regs,
					  unsigned int result, void *ctx, bool with_stack, u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool major = result & VM_FAULT_MAJOR || flags & FAULT_FLAG_TRIED;
	bool slept = task->nvcsw != open->switches;
	struct rec_fault record = {};

	if (!major && !slept && !exceeds_threshold(open, ns))
		return;
	record_init(&record.h, REC_FAULT,
		    (flags & FAULT_FLAG_USER ? FAULT_USER : 0) |
			    (flags & FAULT_FLAG_WRITE ? FAULT_WRITE : 0) |
			    (flags & FAULT_FLAG_INSTRUCTION ? FAULT_EXEC : 0) |
			    (major ? FAULT_MAJOR : 0) | (slept ? FAULT_SLEPT : 0) |
			    (open->retried ? FAULT_RETRIED : 0) |
			    (result & VM_FAULT_ERROR ? FAULT_FAILED : 0) |
			    (regs ? 0 : FAULT_FORCED),
		    sizeof(record), ns);
	record.hook = FAULT_HOOK_FUNCTION;
	record.page = open->page == PAGE_UNKNOWN && open->raised ? page_from_code(open->error_code)
								 : open->page;
	/* If the lock was released, the mapping may be gone. */
	if (result & VM_FAULT_COMPLETED)
		describe_mapping_at(&record, open->address);
	else
		describe_memory(&record, vma, open->address);
	fault_emit(ctx, &record, open, with_stack && !slept);
}

static __always_inline int fault_returned(void *ctx, struct vm_area_struct *vma, u64 address,
					  unsigned int flags, struct pt_regs *regs,
					  unsigned int result, bool with_stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_fault *open;
	u64 ns;

	if (!is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	open = fault_slot(task);
	if (!open || open->tid != (u32)task->pid || open->address != address) {
		__sync_fetch_and_add(&fault_counts.unmatched, 1);
		return 0;
	}
	if (result & VM_FAULT_RETRY) {
		open->retried = true;
		return 0;
	}
	emit_returned(vma, open, flags, regs, result, ctx, with_stack, ns);
	open->tid = 0;
	cost_add(ns);
	return 0;
}

SEC("fexit/handle_mm_fault")
int BPF_PROG(on_fault_end, struct vm_area_struct *vma, unsigned long address, unsigned int flags,
	     struct pt_regs *regs, unsigned int result)
{
	return fault_returned(ctx, vma, address, flags, regs, result, /* with_stack= */ false);
}

/* Replaces the program above if faults that did not sleep are recorded. */
SEC("fexit/handle_mm_fault")
int BPF_PROG(on_fault_end_stack, struct vm_area_struct *vma, unsigned long address,
	     unsigned int flags, struct pt_regs *regs, unsigned int result)
{
	fault_returned(ctx, vma, address, flags, regs, result, /* with_stack= */ true);
	if (scripts_loaded)
		bpf_tail_call(ctx, &script_on_function, 0);
	return 0;
}

/*
 * Stores what filemap_fault() found (mm/filemap.c). It is not called for a page that was mapped
 * along with one near it. If a page is not up to date, its lock is waited for: by the caller, after
 * VM_FAULT_RETRY, or in filemap_fault().
 */
SEC("fexit/filemap_fault")
int BPF_PROG(on_file_fault, struct vm_fault *fault, unsigned int result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_fault *open;

	if (!is_target(task))
		return 0;
	open = fault_slot(task);
	if (!open || open->tid != (u32)task->pid || open->page != PAGE_UNKNOWN)
		return 0;
	if (result & VM_FAULT_MAJOR)
		open->page = PAGE_READ;
	else if (result & VM_FAULT_RETRY || task->nvcsw != open->switches)
		open->page = PAGE_AWAITED;
	else
		open->page = PAGE_CACHED;
	return 0;
}

/* ---- by tracepoints and events ------------------------------------------------------ */

static __always_inline int fault_raised(u64 address, struct pt_regs *regs, u64 error_code,
					bool user)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_fault *open;
	u64 ns;

	/*
	 * A task that may not sleep, for example while a BPF program reads user memory, gets an
	 * error at once.
	 */
	if (!is_target(task) || task->pagefault_disabled)
		return 0;
	ns = bpf_ktime_get_ns();
	open = fault_slot(task);
	if (open && open->tid == (u32)task->pid && open->raised)
		__sync_fetch_and_add(&fault_counts.open, 1);
	open = fault_begin(task, address, ns);
	if (!open)
		return 0;
	open->raised = true;
	open->error_code = error_code;
	open->user = user;
	open->regs = (u64)regs;
	open->ip = BPF_CORE_READ(regs, ip);
	open->sp = BPF_CORE_READ(regs, sp);
	cost_add(ns);
	return 0;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(on_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	return fault_raised(address, regs, error_code, /* user= */ true);
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(on_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	return fault_raised(address, regs, error_code, /* user= */ false);
}

/* struct bpf_perf_event_data of uapi/linux/bpf_perf_event.h; see sample.bpf.c. */
struct fault_event {
	u64 regs[21];
	u64 sample_period;
	u64 addr;
};

static __always_inline u8 flags_from_code(u32 code, bool user)
{
	return (user ? FAULT_USER : 0) | (code & X86_PF_WRITE ? FAULT_WRITE : 0) |
	       (code & X86_PF_INSTR ? FAULT_EXEC : 0);
}

static __always_inline void emit_accounted(void *ctx, struct open_fault *open, bool major,
					   bool with_stack, u64 ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool slept = task->nvcsw != open->switches;
	struct rec_fault record = {};

	if (!major && !slept && !exceeds_threshold(open, ns))
		return;
	record_init(&record.h, REC_FAULT,
		    flags_from_code(open->error_code, open->user) | (major ? FAULT_MAJOR : 0) |
			    (slept ? FAULT_SLEPT : 0),
		    sizeof(record), ns);
	record.hook = FAULT_HOOK_EVENT;
	record.page = page_from_code(open->error_code);
	describe_mapping_at(&record, open->address);
	fault_emit(ctx, &record, open, with_stack && !slept);
}

static __always_inline int fault_accounted(struct fault_event *event, bool with_stack)
{
	struct task_struct *task = bpf_get_current_task_btf();
	bool major = bpf_get_attach_cookie(event) == FAULT_COOKIE_MAJOR;
	struct open_fault *open;
	u64 ns;

	if (!is_target(task))
		return 0;
	ns = bpf_ktime_get_ns();
	open = fault_slot(task);
	if (!open || open->tid != (u32)task->pid || open->address != event->addr) {
		__sync_fetch_and_add(&fault_counts.unmatched, 1);
		return 0;
	}
	emit_accounted(event, open, major, with_stack, ns);
	open->tid = 0;
	cost_add(ns);
	return 0;
}

SEC("perf_event")
int on_fault_accounted(struct fault_event *event)
{
	return fault_accounted(event, /* with_stack= */ false);
}

/* Replaces the program above if faults that did not sleep are recorded. */
SEC("perf_event")
int on_fault_accounted_stack(struct fault_event *event)
{
	fault_accounted(event, /* with_stack= */ true);
	if (scripts_loaded)
		bpf_tail_call(event, &script_on_event, SCRIPT_AFTER_FAULT);
	return 0;
}

/*
 * Whether the task is still in the fault. When the fault began, the processor and the kernel's
 * entry code stored the registers on the task's stack, where they stay until it is over. Later
 * calls overwrite them if the stack grows over that location. stack_address is on the stack of the
 * present call.
 */
static __always_inline bool is_in_fault(const struct open_fault *open)
{
	struct pt_regs *regs = (struct pt_regs *)open->regs;

	return open->stack_address < open->regs && BPF_CORE_READ(regs, ip) == open->ip &&
	       BPF_CORE_READ(regs, sp) == open->sp && (s64)BPF_CORE_READ(regs, orig_ax) == -1;
}

__noinline int fault_emit_sleep(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct open_fault *open = fault_slot(task);
	struct rec_fault record = {};

	if (!open || open->tid != (u32)task->pid || open->reported || !is_in_fault(open))
		return 0;
	open->reported = true;
	record_init(&record.h, REC_FAULT,
		    flags_from_code(open->error_code, open->user) | FAULT_SLEPT, sizeof(record),
		    bpf_ktime_get_ns());
	record.hook = FAULT_HOOK_SLEEP;
	record.page = page_from_code(open->error_code);
	record.tid = task->pid;
	record.start_ns = open->start_ns;
	record.address = open->address;
	emit(RING_BULK, &record.h, sizeof(record));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
