/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind_oracle.h"
#include <dwarf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

Machine random_machine(uint64_t pc)
{
	Machine machine;

	for (int i = 0; i < DWARF_REGS; i++)
		machine.regs[i] = random_below(1ULL << 46) & ~7ULL;
	machine.regs[DWARF_RETURN] = pc;
	return machine;
}

uint64_t memory_at(uint64_t address)
{
	return hash_mix(address, 0x6d656d);
}

/* ---- libdw ------------------------------------------------------------------------- */

Oracle open_oracle(const char *path, const char *debug_path)
{
	Oracle oracle = {.fd = open(path, O_RDONLY), .debug_fd = -1};

	elf_version(EV_CURRENT);
	oracle.elf = elf_begin(oracle.fd, ELF_C_READ_MMAP, NULL);
	assert_non_null(oracle.elf);
	oracle.eh_frame = dwarf_getcfi_elf(oracle.elf);
	if (debug_path)
		oracle.debug_fd = open(debug_path, O_RDONLY);
	oracle.dwarf = dwarf_begin(debug_path ? oracle.debug_fd : oracle.fd, DWARF_C_READ);
	if (oracle.dwarf)
		oracle.debug_frame = dwarf_getcfi(oracle.dwarf);
	return oracle;
}

void close_oracle(Oracle *oracle)
{
	dwarf_cfi_end(oracle->eh_frame);
	dwarf_end(oracle->dwarf);
	elf_end(oracle->elf);
	closep(&oracle->fd);
	closep(&oracle->debug_fd);
}

static bool apply(uint64_t *stack, unsigned *depth, uint8_t op)
{
	uint64_t b, a;

	if (*depth < 2)
		return false;
	b = stack[--*depth];
	a = stack[--*depth];
	switch (op) {
	case DW_OP_plus:
		a += b;
		break;
	case DW_OP_minus:
		a -= b;
		break;
	case DW_OP_mul:
		a *= b;
		break;
	case DW_OP_and:
		a &= b;
		break;
	case DW_OP_shl:
		a <<= b;
		break;
	case DW_OP_ge:
		a = (int64_t)a >= (int64_t)b;
		break;
	default:
		return false;
	}
	stack[(*depth)++] = a;
	return true;
}

/* The top of the stack; unknown: an operation that this does not know. */
static Value evaluate(const Machine *machine, const uint64_t *cfa, const Dwarf_Op *ops,
		      size_t count, bool *ret_is_value)
{
	uint64_t stack[16];
	unsigned depth = 0;

	*ret_is_value = false;
	for (size_t i = 0; i < count && depth < ARRAY_LEN(stack); i++) {
		uint8_t op = ops[i].atom;

		if (op >= DW_OP_breg0 && op < DW_OP_breg0 + ARRAY_LEN(machine->regs))
			stack[depth++] = machine->regs[op - DW_OP_breg0] + ops[i].number;
		else if (op == DW_OP_bregx && ops[i].number < ARRAY_LEN(machine->regs))
			stack[depth++] = machine->regs[ops[i].number] + ops[i].number2;
		else if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
			stack[depth++] = op - DW_OP_lit0;
		else if (op >= DW_OP_const1u && op <= DW_OP_consts)
			stack[depth++] = ops[i].number;
		else if (op == DW_OP_call_frame_cfa && cfa)
			stack[depth++] = *cfa;
		else if (op >= DW_OP_reg0 && op < DW_OP_reg0 + ARRAY_LEN(machine->regs)) {
			stack[depth++] = machine->regs[op - DW_OP_reg0];
			*ret_is_value = true;
		} else if (op == DW_OP_regx && ops[i].number < ARRAY_LEN(machine->regs)) {
			stack[depth++] = machine->regs[ops[i].number];
			*ret_is_value = true;
		} else if (op == DW_OP_plus_uconst && depth)
			stack[depth - 1] += ops[i].number;
		else if (op == DW_OP_deref && depth)
			stack[depth - 1] = memory_at(stack[depth - 1]);
		else if (op == DW_OP_stack_value)
			*ret_is_value = true;
		else if (!apply(stack, &depth, op))
			return (Value){.kind = VALUE_UNKNOWN};
	}
	return depth ? (Value){VALUE_KNOWN, stack[depth - 1]} : (Value){.kind = VALUE_UNKNOWN};
}

static Value register_by_libdw(Dwarf_Frame *frame, int regno, const Machine *machine,
			       const uint64_t *cfa)
{
	Dwarf_Op memory[3], *ops;
	size_t count;
	bool is_value;
	Value value;

	if (dwarf_frame_register(frame, regno, memory, &ops, &count))
		return (Value){.kind = VALUE_UNKNOWN};
	if (count == 0)
		return ops ? (Value){.kind = VALUE_UNDEFINED}
			   : (Value){VALUE_KNOWN, machine->regs[regno]};
	value = evaluate(machine, cfa, ops, count, &is_value);
	if (value.kind == VALUE_KNOWN && !is_value)
		value.number = memory_at(value.number);
	return value;
}

Caller ask_libdw(const Oracle *oracle, uint64_t svma, const Machine *machine)
{
	Caller caller = {.cfa.kind = VALUE_UNKNOWN};
	Dwarf_Frame *frame = NULL;
	Dwarf_Op *ops;
	size_t count;
	bool is_value;

	if ((!oracle->eh_frame || dwarf_cfi_addrframe(oracle->eh_frame, svma, &frame)) &&
	    (!oracle->debug_frame || dwarf_cfi_addrframe(oracle->debug_frame, svma, &frame)))
		return caller;
	caller.covered = true;
	if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count > 0) {
		caller.cfa = evaluate(machine, NULL, ops, count, &is_value);
		caller.cfa_by_expression = count > 1;
	}
	caller.ra = register_by_libdw(frame, DWARF_RETURN, machine, &caller.cfa.number);
	caller.bp = register_by_libdw(frame, DWARF_RBP, machine, &caller.cfa.number);
	caller.bx = register_by_libdw(frame, DWARF_RBX, machine, &caller.cfa.number);
	/* For registers without an instruction elfutils takes those of the caller by the psABI as
	 * unchanged; but where rbx should be in its list, there is rax's number. */
	if (caller.bx.kind == VALUE_UNDEFINED)
		caller.bx = (Value){VALUE_KNOWN, machine->regs[DWARF_RBX]};
	caller.sp = register_by_libdw(frame, DWARF_RSP, machine, &caller.cfa.number);
	free(frame);
	return caller;
}

/* ---- a rule, as unwind_rows.h says ------------------------------------------------------- */

static uint64_t cfa_by_rule(const struct unwind_rule *rule, const Machine *machine)
{
	const uint64_t *regs = machine->regs;
	uint8_t index;

	switch (rule->cfa) {
	case CFA_REG:
		return regs[rule->cfa_reg] + rule->cfa_offset;
	case CFA_DEREF:
		index = rule->cfa_reg >> CFA_INDEX_SHIFT;
		return memory_at(regs[rule->cfa_reg & (DWARF_REGS - 1)] + rule->cfa_offset +
				 (index ? 8 * regs[index] : 0)) +
		       rule->extra;
	case CFA_PLT:
		return regs[DWARF_RSP] + 8 +
		       ((regs[DWARF_RETURN] & 15) >= (uint64_t)rule->extra ? 8 : 0);
	}
	fail_msg("no rule for a CFA");
	return 0;
}

static Value bp_by_rule(const struct unwind_rule *rule, const Machine *machine, uint64_t cfa)
{
	const uint64_t *regs = machine->regs;

	switch (rule->bp) {
	case BP_SAME:
		return (Value){VALUE_KNOWN, regs[DWARF_RBP]};
	case BP_AT_CFA:
		return (Value){VALUE_KNOWN, memory_at(cfa + rule->bp_offset)};
	case BP_AT_BP:
		return (Value){VALUE_KNOWN, memory_at(regs[DWARF_RBP] + rule->bp_offset)};
	case BP_AT_SP:
		return (Value){VALUE_KNOWN, memory_at(regs[DWARF_RSP] + rule->bp_offset)};
	case BP_LOST:
		return (Value){.kind = VALUE_UNDEFINED};
	}
	return (Value){VALUE_KNOWN, regs[rule->bp - BP_IN_REG]};
}

static Value bx_by_rule(const struct unwind_rule *rule, const Machine *machine, uint64_t cfa)
{
	switch (rule->bx) {
	case BX_SAME:
		return (Value){VALUE_KNOWN, machine->regs[DWARF_RBX]};
	case BX_AT_CFA:
		return (Value){VALUE_KNOWN, memory_at(cfa + rule->bx_offset)};
	}
	return (Value){.kind = VALUE_UNDEFINED};
}

Caller ask_rule(const struct unwind_rule *rule, const Machine *machine)
{
	uint64_t rsp = machine->regs[DWARF_RSP], cfa, ra;

	if (rule->cfa == CFA_SIGNAL) /* struct ucontext of the kernel */
		return (Caller){
			.covered = true,
			.cfa = {VALUE_KNOWN, memory_at(rsp + 160)},
			.ra = {VALUE_KNOWN, memory_at(rsp + 168)},
			.bp = {VALUE_KNOWN, memory_at(rsp + 120)},
			.bx = {VALUE_KNOWN, memory_at(rsp + 128)},
			.sp = {VALUE_KNOWN, memory_at(rsp + 160)},
		};
	cfa = cfa_by_rule(rule, machine);
	ra = rule->ra == RA_AT_CFA ? memory_at(cfa - 8) : machine->regs[rule->ra - RA_REG];
	return (Caller){
		.covered = true,
		.cfa = {VALUE_KNOWN, cfa},
		.ra = {VALUE_KNOWN, ra},
		.bp = bp_by_rule(rule, machine, cfa),
		.bx = bx_by_rule(rule, machine, cfa),
		.sp = {VALUE_KNOWN, cfa},
	};
}

/* ---- tables -------------------------------------------------------------------------- */

Built build_table(const char *path, const char *debug_path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY);
	_cleanup_close_ int debug_fd = debug_path ? open(debug_path, O_RDONLY) : -1;
	Built built = {};
	GElf_Ehdr header;

	assert_int_equal(elf_map_open(fd, &built.file), 0);
	if (debug_path)
		assert_int_equal(elf_map_open(debug_fd, &built.debug), 0);
	assert_int_equal(elf_file_identify(built.file.elf, &built.identity), 0);
	assert_non_null(gelf_getehdr(built.file.elf, &header));
	built.entry = header.e_entry - built.identity.base_svma;
	built.result = unwind_table_build(&built.file, &built.debug, built.identity.base_svma,
					  &built.table);
	if (built.result == 0) {
		assert_true(unwind_table_valid(&built.table));
		built.coverage = unwind_table_coverage(&built.table, &built.identity);
	}
	return built;
}

void free_built(Built *built)
{
	unwind_table_free(&built->table);
	elf_identity_free(&built->identity);
	elf_map_close(&built->file);
	elf_map_close(&built->debug);
}

const struct unwind_rule *rule_at(const UnwindTable *table, uint64_t pc)
{
	return &table->rules.items[unwind_table_find(table, pc)->rule];
}
