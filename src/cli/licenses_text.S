/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file that the build option `bundle` names, as it is. */
	.section .rodata
	.global licenses_text, licenses_text_end
	.hidden licenses_text, licenses_text_end
licenses_text:
	.incbin LICENSES_FILE
licenses_text_end:
	.section .note.GNU-stack, "", @progbits
