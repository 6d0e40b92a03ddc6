# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the seeds of the fuzz targets, so that no binary files are checked in.

Small ELF files of many kinds for fuzz_object (tests/fuzz/elf_parts.h), lines of
/proc/PID/maps, perf maps and jitdumps; tests/fuzz/make_seeds.c makes the rest.
"""
import lzma
import os
import shutil
import struct
import subprocess
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PCLNTAB = TESTS / "unit" / "objects" / "pclntab.S"
SLEEPS = TESTS / "captures" / "6.1-sleeps.capture"

# Calls inlined in calls, a function in two pieces, a block with a range of its own.
SOURCE = """
extern int outside(int);
static inline __attribute__((always_inline)) int innermost(int x) { return outside(x) * 3; }
static inline __attribute__((always_inline)) int inner(int x)
{ for (int i = 0; i < x; i++) { int y = innermost(i); if (y > 7) return y; } return 1; }
__attribute__((noinline)) int known(int x) { return inner(x) + inner(x + 1); }
__attribute__((noinline, section(".text.unlikely"))) static int rare(int x) { return inner(x); }
int exported(int x) { return __builtin_expect(x > 9, 0) ? rare(x) : known(x); }
"""
CXX_SOURCE = """
namespace space { struct Thing { int value; int method(int x) const; };
int Thing::method(int x) const { try { return value / x; } catch (...) { return 0; } } }
extern "C" int entry(int x) { return space::Thing{x}.method(x); }
"""
# Names of D, Fortran, Haskell and Ada, each with other parts of their languages.
NAMES = """
_Dmain
_D1w3midFiZv
_D3std5range10primitives__T3putTSQBf5stdio4File17LockingTextWriterTaZQBqFNfKQBsaZv
_D1a1bFNaNbNcNdNeNiNjNlNmMJiKkLlNkHiaAyAaG3dXv
_D1a__T1fVAyaa3_616263Vde8PN3Vdc8P1c8P1VAiA2i1i2VaN3Vbi1Z1fFZv
_D1a1AxMxFDNgFNaZiPFZvBi1aNhG4fPUiZvYvYv
_D1a6__initZ
_D1a1b6__ctorMFZC1a1b
_D1a1b10__postblitMFZv
_D1a__T1gS_D1a1bFZvX3abcHTiZ1gFYv
_D1a11__T1fTiTaZ1fFOxNgyEQbIQdZv
_D1a1b4__S11fFZv
_D1a1S6__vtblZ
_D1a__T1fVS1a1SS2i1a1_61VHiaA1i1i2VfNINFVeNANVfNPNZ1fFZv
_D1a__T1fVmi3Vli4Vhi5Vui6Vwi7Vf8P2VfINFZ1fFzizkNnZv
__mm_MOD_mid
__mm_MOD_mid.constprop.0
base_GHCziBase_zpzp_info
Main_zdwgo_info
base_GHCziTuple_Z2T_info
a_B_Z3H_info
w__inner__mid.0
_ada_w
ada__text_io__put_line__2
a__Oadd
pack__TKB
p__b___elabb
"""
SHARED = ["-shared", "-fPIC", "-nostdlib", "-Wl,-z,noseparate-code", "-Wl,--build-id=sha1"]
BUILDS = {
    "dwarf5": ["-O2", "-g"],
    "dwarf4": ["-O2", "-gdwarf-4"],
    "types": ["-O0", "-g", "-fdebug-types-section"],
    "compressed": ["-O2", "-g", "-gz=zlib"],
    "plain": ["-O2", "-g0"],
    "lazy": ["-O2", "-g", "-Wl,-z,lazy", "-fcf-protection=full"],
    "sections": ["-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"],
}
TRAILER_MAGIC = 0x53545241
# CFI that compilers seldom write: the first function and a restorer without CFI, a signal frame,
# expressions, and most instructions.
CFI_ASSEMBLY = """
.text
.globl _start
_start: xor %ebp, %ebp
 .zero 30, 0x90
 mov $15, %rax
 syscall
 .zero 40, 0x90
a: .cfi_startproc
 nop
 .cfi_escape 0x0f, 5, 0x77, 8, 6, 0x23, 8
 nop
 .cfi_escape 0x0f, 6, 0x76, 8, 6, 0x08, 8, 0x22
 nop
 .cfi_escape 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22
 nop
 .cfi_escape 0x0f, 6, 0x92, 7, 8, 6, 0x38, 0x1c
 nop
 .cfi_escape 0x0f, 11, 0x77, 8, 0x09, 0xf8, 0x22, 0x10, 8, 0x22, 0x11, 0x78, 0x22
 nop
 .cfi_escape 0x0f, 3, 0x77, 8, 0x96, 0x0f, 4, 0x77, 8, 0x38, 0x1e, 0x0f, 1, 0x30
 nop
 .cfi_escape 0x0c, 6, 16, 0x0e, 24, 0x0d, 7, 0x12, 6, 0x7e, 0x13, 0x7d
 nop
 .cfi_escape 0x05, 6, 2, 0x11, 6, 2, 0x2f, 6, 2, 0x06, 6, 0x07, 6, 0x08, 6, 0x09, 6, 3
 nop
 .cfi_escape 0x0a, 0x14, 6, 2, 0x15, 6, 2, 0x0b, 0x2e, 16, 0x10, 6, 2, 0x76, 0, 0x16, 3, 2, 0x76, 0
 nop
 .cfi_escape 0x0f, 10, 0x77, 8, 0x79, 0, 0x38, 0x1e, 0x22, 0x06, 0x23, 8
 nop
 .cfi_escape 0x02, 1, 0x03, 1, 0, 0x04, 1, 0, 0, 0, 0x1d, 1, 0, 0, 0, 0, 0, 0, 0, 0xc6, 0x01, 0, 0, 0, 0
 .zero 100, 0x90
 .cfi_endproc
b: .cfi_startproc simple
 .cfi_signal_frame
 .cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 16, 3, 0x77, 0xa8, 1
 nop
 .cfi_endproc
c: .cfi_startproc
 .cfi_undefined 16
 nop
 .cfi_endproc
"""

# Code that no call frame information is about, of the kinds that are followed to find its stack, and
# of those that nearly are. Each between two functions that have some.
BARE_CODE = (
    "endbr64; push %rbp; mov %rsp, %rbp; cmpb $0, a(%rip); je 1f; call a; nop; 1: pop %rbp; ret",
    "sub $8, %rsp; test %eax, %eax; jne 1f; add $8, %rsp; ret; .p2align 4; 1: add $8, %rsp; jmp *%rax",
    "push %rax; 1: mov %rdi, %rax; shr $3, %rax; jne 1b; pop %rax; jmp a",
    "jmp 1f; nop; 1: xor %eax, %eax; ret; int3; int3",
    "pop %rbp; ret", "add $8, %rsp; ret", "push %rax; ret", "mov %rsp, %rbp; ret", "push %rax; jmp a",
    "push %rax; push %rbp; ret", "je 1f; push %rax; 1: pop %rax; ret", "je 1f + 1; 1: mov $1, %eax; ret",
    "je . - 20; ret", "hlt", "push %rax; " * 9 + "ret", ".zero 3000, 0xcc", ".zero 900",
    ".fill 300, 4, 0x00401f0f", "mov $15, %rax; syscall",
    # Aligned stacks: the old pointer in a register, in a slot of the stack, in rbp.
    "lea 8(%rsp), %r10; and $-32, %rsp; push -8(%r10); push %rbp; mov %rsp, %rbp; push %r10; sub $64, %rsp; "
    "call a; mov -8(%rbp), %r10; leave; lea -8(%r10), %rsp; ret",
    "mov %rsp, %rax; sub $128, %rsp; and $-64, %rsp; mov %rax, 56(%rsp); mov %rbp, 48(%rsp); call a; "
    "mov 48(%rsp), %rbp; mov 56(%rsp), %rsi; mov %rsi, %rsp; ret",
    "mov %rsp, %r11; push %rbx; push %rbp; sub $96, %rsp; and $-32, %rsp; mov %r11, 88(%rsp); lea 32(%rsp), %rbp; "
    "mov %rbx, 8(%rbp); call a; mov 88(%rsp), %rax; mov -16(%rax), %rbp; mov -8(%rax), %rbx; lea (%rax), %rsp; ret",
    "push %rbp; mov %rsp, %rbp; push %rbx; and $-64, %rsp; sub $64, %rsp; test %eax, %eax; je 1f; call a; "
    "1: mov -8(%rbp), %rbx; leave; ret",
    "push %rbp; mov %rsp, %rbp; and $-32, %rsp; enter $8, $0; ret", "mov (%rsp), %rax; mov %rbx, (%rsp); push %rax; ret",
    "sub $24, %rsp; mov %rbx, 16(%rsp); mov %rbp, 8(%rsp); call a; mov 8(%rsp), %rbp; mov 16(%rsp), %rbx; "
    "add $24, %rsp; ret $8", "push %rbx; add $8, %rsp; pop %rdx; jmp *%rdx", "pop %rax; pop %rbx; push %rax; ret",
    # Instructions of each length and map, between a push and its pop.
    "push %rbx; movslq %edi, %rax; imul $3, %rax, %rdx; imul $300, %rax, %rdx; imul %rdi, %rax; movb (%rdi), %al; "
    "xchg %rax, %rdx; xchg %cl, %dl; xchg %rax, %rsi; cqto; cltq; movabs 0x1122334455667788, %rax; mul %rdi; not %rax; "
    "neg %rcx; xlat; lar %ax, %eax; cvttss2si %xmm0, %eax; movmskps %xmm0, %eax; pmovmskb %xmm0, %eax; "
    "pextrw $1, %xmm0, %eax; movzbl (%rdi), %eax; popcnt %rdi, %rax; bsf %rdi, %rax; cmove %rdi, %rax; sete %al; "
    "shld $3, %rax, %rdx; btr %rax, %rdx; bts $3, %rdx; lock cmpxchg %rdx, (%rdi); xadd %rax, %rdx; bswap %rax; "
    "movbe (%rdi), %rax; crc32b %dl, %eax; adcx %rdi, %rax; pextrb $1, %xmm0, %eax; pcmpistri $1, %xmm0, %xmm1; "
    "pshufb %xmm0, %xmm1; lea (%edi, %esi), %eax; mov %fs:0x28, %rax; testb $1, (%rdi); idivl (%rdi); pop %rbx; ret",
    "push %rbx; vpxor %ymm0, %ymm0, %ymm0; vmovd %xmm0, %eax; kmovw %k1, %eax; kandw %k1, %k2, %k3; vcvttss2usi %xmm0, %eax; "
    "andn %rdi, %rsi, %rax; bzhi %rdi, %rsi, %rax; blsr %rdi, %rax; mulx %rdi, %rsi, %rax; pext %rdi, %rsi, %rax; "
    "rorx $3, %rdi, %rax; vpaddd %zmm0, %zmm1, %zmm2; vaddph %zmm0, %zmm1, %zmm2; vzeroupper; pop %rbx; ret",
    "pushf; push %fs; push %gs; push $300; push $3; pushq (%rax); popq (%rax); pop %gs; pop %fs; add $16, %rsp; popf; ret",
    "push %rbx; xor %ebx, %ebx; sub %rax, %rax; fnstsw %ax; loop .; jrcxz .; jecxz .; pop %rbx; ud2", "lret", "iretq", "sysret",
    "ljmp *(%rax)", ".byte 0x62, 0xfc, 0x7c, 0x8, 1, 2, 3, 4; ret", ".byte 0x06; ret", ".byte 0x8f, 0xe8, 0x78, 0xc0; ret",
    ".byte 0xc5, 0xf8, 0x77; .byte 0xc8; .byte 8, 0, 0; .byte 0xc9; ret")


def bare_assembly():
    function = "f{0}: .cfi_startproc; nop; ret; .cfi_endproc\n.p2align 4\n"
    return ".text\n.globl _start\n_start:\na: .cfi_startproc; ret; .cfi_endproc\n.p2align 4\n" + "".join(
        f"{code}\n.p2align 4\n" + function.format(number) for number, code in enumerate(BARE_CODE))


def run(*command):
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


def put_together(path, object_file, debug=b"", dwz=b"", by_build_id=0):
    path.write_bytes(object_file + debug + dwz + struct.pack(
        "<IIII", len(debug), len(dwz), by_build_id, TRAILER_MAGIC))


def build_id_of(path):
    out = subprocess.run(["readelf", "-n", path], check=True, capture_output=True, text=True)
    return bytes.fromhex(out.stdout.split("Build ID: ")[1].split()[0])


def make_go(seeds):
    """Go's own table, as three versions of Go lay it out, in a section of its own and amidst others."""
    for version in (118, 120, 126, 127):
        for name, options in (("go", ["-static"]), ("go-pie", ["-shared", "-DRELOCATED"])):
            run("gcc", "-nostdlib", f"-DVERSION={version}", *options, "-s", PCLNTAB, "-o", seeds / f"{name}-{version}")


def make_separate_debug(work, seeds, whole):
    """The object stripped, its debug file found by build id or by link; then dwz's, too."""
    debug, stripped, with_dwz = work / "x.debug", work / "stripped", work / "alt.debug"
    run("objcopy", "--only-keep-debug", whole, debug)
    run("strip", whole, "-o", stripped)
    put_together(seeds / "by-build-id", stripped.read_bytes(), debug.read_bytes(), by_build_id=1)
    run("objcopy", f"--add-gnu-debuglink={debug}", stripped, work / "linked")
    put_together(seeds / "by-link", (work / "linked").read_bytes(), debug.read_bytes())
    run("objcopy", "--remove-section=.note.gnu.build-id", whole, work / "no-id")
    run("objcopy", "--only-keep-debug", work / "no-id", debug)
    run("strip", work / "no-id", "-o", work / "no-id-stripped")
    run("objcopy", f"--add-gnu-debuglink={debug}", work / "no-id-stripped", work / "by-crc")
    put_together(seeds / "by-crc", (work / "by-crc").read_bytes(), debug.read_bytes())
    link = work / "altlink"
    link.write_bytes(b"../x.dwz\0" + build_id_of(whole))
    run("objcopy", f"--add-section=.gnu_debugaltlink={link}", whole, with_dwz)
    put_together(seeds / "dwz", with_dwz.read_bytes(), dwz=whole.read_bytes())


def make_mini_debug(work, seeds, whole):
    """.gnu_debugdata: a symbol table within xz within a stripped file."""
    mini, packed, stripped = work / "mini", work / "mini.xz", work / "mini-stripped"
    run("objcopy", "--only-keep-debug", "--strip-debug", whole, mini)
    run("strip", whole, "-o", stripped)
    for name, content in (("mini-debug", mini.read_bytes()),
                          ("mini-debug-large", mini.read_bytes() + bytes(1 << 20)),
                          ("mini-debug-none", b"no ELF file")):
        packed.write_bytes(lzma.compress(content, check=lzma.CHECK_NONE))
        run("objcopy", f"--add-section=.gnu_debugdata={packed}", stripped, seeds / name)


def make_split(work, seeds):
    """Programs with skeletons; the .dwo or .dwp file is in the place of the debug file."""
    source = work / "split.c"
    source.write_text(SOURCE + "int f(int x) { return inner(x) * 2; }\n")  # a name this short is in the entry itself
    for name, compiler, options, packer in (
            ("split-5", "gcc", ["-gdwarf-5"], None),
            ("split-sections", "gcc", ["-gdwarf-5", "-ffunction-sections"], None),
            ("split-4", "gcc", ["-gdwarf-4"], None),
            ("split-types", "gcc", ["-gdwarf-5", "-fdebug-types-section"], None),
            ("split-strict", "gcc", ["-gdwarf-5", "-gstrict-dwarf", "-O1"], None),
            ("split-clang", "clang", ["-gdwarf-5", "-ffunction-sections"], None),
            ("split-clang-4", "clang", ["-gdwarf-4", "-ffunction-sections"], None),
            ("split-dwp", "clang", ["-gdwarf-5"], "llvm-dwp"),
            ("split-dwp-4", "gcc", ["-gdwarf-4"], "dwp")):
        folder = work / name
        folder.mkdir()
        run(compiler, "-O2", "-fPIC", "-gsplit-dwarf", *options, "-c", source, "-o", folder / "x.o")
        run(compiler, *SHARED, folder / "x.o", "-o", folder / "program")
        split = folder / "x.dwo"
        if packer:
            if not shutil.which(packer):
                continue
            run("timeout", "60", packer, split, "-o", folder / "program.dwp")
            split = folder / "program.dwp"
        put_together(seeds / name, (folder / "program").read_bytes(), split.read_bytes())


def make_zstd(work, seeds, whole):
    """The same sections compressed by zstd, where objcopy can do that."""
    subprocess.run(["objcopy", "--compress-debug-sections=zstd", whole, seeds / "zstd"], capture_output=True)
    if not (seeds / "zstd").exists():
        shutil.copy(whole, seeds / "zstd")


def make_names(seeds):
    long = ["__" + "m" * 20000 + "_MOD_f", "base_GHCziBase_" + "Z64H" * 300 + "_info"]  # longer, and that read as longer
    for number, name in enumerate(NAMES.split() + long):
        (seeds / f"name{number}").write_text(name)


def make_scripts(seeds):
    """Tables of lines of a function with jumps, long lines and none, in each version's format."""
    pairs = bytes([6, 1, 50, 2, 4, 0xff, 8, 0x80, 255, 0, 2, 0x7f])
    locations = bytes([0x80 | 10 << 3, 1, 2, 0x80 | 11 << 3 | 1, 1, 2, 0x80 | 13 << 3, 5, 0x80 | 14 << 3 | 7, 0x42, 1, 1, 2, 3,
                       0x80 | 15 << 3, 0x80 | 3 << 3 | 2, 0x12])
    for minor in range(8, 15):
        table = pairs if minor < 11 else locations
        for at in (-1, 0, 2, 12, 40, 400):
            (seeds / f"3.{minor}-{at}").write_bytes(struct.pack("<BIi", minor - 8, 10, at) + table)
    (seeds / "cut").write_bytes(struct.pack("<BIi", 3, 0xffffffff, 1000) + bytes([0xf0, 0x7f, 0x7f]))


def make_objects(work, seeds):
    source, cxx = work / "x.c", work / "x.cc"
    source.write_text(SOURCE)
    cxx.write_text(CXX_SOURCE)
    for name, flags in BUILDS.items():
        run("gcc", *SHARED, *flags, source, "-o", seeds / name)
    run("clang", *SHARED, "-O2", "-g", source, "-o", seeds / "clang")
    # Without a C++ library: g++ need not be there, clang reads the language.
    run("clang", *SHARED, "-O1", "-g", "-fexceptions", "-Wl,--unresolved-symbols=ignore-all",
        cxx, "-o", seeds / "cxx")
    run("gcc", "-c", "-O2", "-g", source, "-o", seeds / "relocatable")
    make_separate_debug(work, seeds, seeds / "dwarf5")
    make_mini_debug(work, seeds, seeds / "dwarf5")
    make_split(work, seeds)
    make_zstd(work, seeds, seeds / "dwarf5")
    make_go(seeds)
    (seeds / "vdso").write_bytes(read_vdso())


def read_vdso():
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith("[vdso]"):
            start, end = (int(x, 16) for x in line.split()[0].split("-"))
            with open("/proc/self/mem", "rb") as memory:
                memory.seek(start)
                return memory.read(end - start)
    return b""


def make_unwind(work, seeds, objects):
    """The same objects; sections of call frame information alone, hand-written ones too."""
    names = ("dwarf5", "plain", "lazy", "clang", "cxx", "by-build-id", "vdso", "go-118", "go-pie-118", "go-120",
             "go-pie-126", "go-127")
    for name in names:
        shutil.copy(objects / name, seeds / name)
    source, assembly = work / "x.c", work / "cfi.s"
    for name, compress in (("debug-frame", "none"), ("debug-frame-gz", "zlib")):
        run("gcc", *SHARED, "-O2", "-g", f"-gz={compress}", "-fno-asynchronous-unwind-tables",
            "-fno-exceptions", source, "-o", seeds / name)
    whole = bytearray((seeds / "plain").read_bytes())
    whole[0x28:0x30], whole[0x3c:0x40] = bytes(8), bytes(4)  # no section headers
    (seeds / "no-sections").write_bytes(whole)
    assembly.write_text(CFI_ASSEMBLY)
    run("gcc", "-nostdlib", "-static", assembly, "-o", seeds / "assembly")
    (work / "bare.s").write_text(bare_assembly())
    run("gcc", "-nostdlib", "-static", work / "bare.s", "-o", seeds / "bare")
    # All of its call frame information is of an unknown version.
    (seeds / "bare-dropped").write_bytes((seeds / "bare").read_bytes().replace(b"\x01zR\0", b"\x4dzR\0"))
    for which, kind in enumerate(("eh", "debug")):
        for number, section in enumerate(cfi_sections(debug=which == 1)):
            (seeds / f"{kind}-{number}").write_bytes(bytes([which]) + section)
    for name, object_name, section, which in (
            ("eh", "plain", ".eh_frame", 0), ("eh-cxx", "cxx", ".eh_frame", 0),
            ("eh-hand", "assembly", ".eh_frame", 0), ("debug", "debug-frame", ".debug_frame", 1)):
        raw = work / f"{name}.raw"
        run("objcopy", f"--dump-section={section}={raw}", seeds / object_name, work / "unused")
        (seeds / name).write_bytes(bytes([which]) + raw.read_bytes())


def cfi_entry(body, wide=False):
    return (struct.pack("<IQ", 0xffffffff, len(body)) if wide else struct.pack("<I", len(body))) + body


def cfi_section(debug, letters, data=b"", fde=b"", version=1, more=b"", wide=False):
    """A CIE whose augmentation has this data, and an FDE that begins with what fde says. debug: as in
    .debug_frame, where the CIE's own number is all ones, and the FDE has its place and not how far it is back."""
    width, program = 8 if wide else 4, b"\x0c\x07\x08\x90\x01"
    sized = struct.pack("B", len(data)) + data if letters.startswith(b"z") else data
    number = (b"\xff" if debug else b"\0") * width
    cie = cfi_entry(number + bytes([version]) + letters + b"\0" + more + b"\x01\x78\x10" + sized + program, wide)
    place = (0 if debug else len(cie) + (12 if wide else 4)).to_bytes(width, "little")
    return cie + cfi_entry(place + fde + b"\0\x41\x0e\x10", wide)


def cfi_sections(debug):
    """Each way to write a pointer and each letter of an augmentation, allowed or not."""
    for encoding, size in ((0x00, 8), (0x02, 2), (0x0a, 2), (0x03, 4), (0x0b, 4), (0x0c, 8), (0x1b, 4), (0x3b, 4),
                           (0x50, 15), (0x9b, 4), (0x05, 4), (0xff, 4)):
        pointer = (0x40).to_bytes(size, "little")
        yield cfi_section(debug, b"zR", bytes([encoding]), pointer + pointer)
        yield cfi_section(debug, b"zPLR", bytes([encoding]) + pointer + b"\x1b\x1b", bytes(4) + b"\x40\0\0\0")
    for encoding in (0x01, 0x09):
        for number in (b"\x40", b"\xc0\x80\x00", b"\xff" * 12 + b"\x01", b"\xc0"):
            yield cfi_section(debug, b"zR", bytes([encoding]), number + b"\x10")
    for letters, version, more, wide in (
            (b"zS", 1, b"", False), (b"zBR", 1, b"", False), (b"zX", 1, b"", False), (b"eh", 1, b"", False),
            (b"", 3, b"", True), (b"", 4, b"\x08\0", False), (b"", 4, b"\x04\0", False), (b"", 2, b"", False),
            (b"z", 1, b"\xff", False)):
        yield cfi_section(debug, letters, b"\0", bytes(8) + b"\x40" + bytes(7), version, more, wide)
    number = (b"\xff" if debug else b"\0") * 4
    yield from (cfi_entry(number + b"\x01zR"), cfi_entry(b"\0"), b"\xf5\xff\xff\xff", b"\x40\0\0\0\0",
                cfi_entry(number + b"\x01\0\x81"))


def make_maps(seeds):
    (seeds / "self").write_bytes(Path("/proc/self/maps").read_bytes())
    (seeds / "made").write_text(
        "1000-2000 r-xp 00001000 fe:01 42                        /a\\012b\\\\012 (deleted)\n"
        "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]\n"
        "1000-2000 rwxs 0 00:00 18446744073709551615\n7f00-7f01 r--p 0 00:00 0 \n"
        "2000-1000 r-xp 0 00:00 0 /x\n1000-2000 r-xp 0 00:00\n0x1-2 r-xp 0 00:00 0 /x")


NONE_ID, SELF_ID = "1" * 32 + "A", "0" * 32 + "A"


def make_api(seeds):
    """The first byte says what of (fuzz_api.c): "f" and "i" are the first call modulo 3, "g" and "h" the others."""
    asked = ('{"jobs":[{"memoryMap":[["self","%s"],["none","%s"]],"stacks":[[[0,4096],[0,1],[1,7]],[[1,99]]]}]}'
             % (SELF_ID, NONE_ID))
    for number, text in enumerate((
            "f" + asked, 'f{"jobs":[{"memoryMap":[["none"]],"stacks":[]}]}', 'f{"jobs":[{"memoryMap":[],"stacks":[[[0,1]]]}]}',
            'f{"jobs":[{"memoryMap":[],"stacks":[7]}]}',
            'i{"memoryMap":[["gone","%s"]],"stacks":[[[0,1]]]}' % ("2" * 32 + "A"),
            'g{"debugName":"self","debugId":"%s","moduleOffset":"0x1000","file":"/etc/passwd"}' % SELF_ID,
            'h{"debugName":"self","debugId":"%s","name":"self","codeId":"00","startAddress":"0x1000","size":"0x40",'
            '"continueUntilFunctionEnd":true}' % SELF_ID,
            'P{"meta":{"a":[1,{}]},"libs":[{"arch":"x86_64","name":"p","path":"/p","debugName":"p","debugPath":"/p",'
            '"breakpadId":"AB0A","codeId":"ab"}]}')):
        (seeds / f"{number}").write_text(text)


def make_jit(seeds):
    (seeds / "map").write_text(
        "7f0000001000 40 LazyCompile:~main /x.js:1\n0x7f0000002000 0x80 [anon] b c\n"
        "ffffffffffffffff 10 wraps\n1000 0 empty\n1000 10\n\nz\n2000 20 torn")
    name, code = b"function\0", b"\xc3" * 16
    load = struct.pack("<IIQQQQ", 1, 1, 0x1000, 0x1000, len(code), 1) + name + code
    move = struct.pack("<IIQQQQQ", 1, 1, 0x1000, 0x1000, 0x2000, len(code), 1)
    lines = (struct.pack("<QQ", 0x1000, 2) + struct.pack("<Qii", 0x1000, 3, 0) + b"/x.js\0" +
             struct.pack("<Qii", 0x1004, 4, 0) + b"\xff\0")
    records = b"".join(struct.pack("<IIQ", kind, 16 + len(body), 10 + kind) + body
                       for kind, body in ((2, lines), (0, load), (1, move), (3, b""),
                                          (4, b"\0" * 24), (9, b"\0" * 8)))
    for name, magic, flags, filler in (("dump", 0x4A695444, 0, 0), ("dump-tsc", 0x4A695444, 1, 0),
                                       ("dump-v8", 0x4A695444, 0, 0xdeadbeef), ("dump-swapped", 0x4454694A, 0, 0)):
        header = struct.pack("<IIIIIIQQ", magic, 1, 40, 62, filler, 1, 5, flags)
        (seeds / name).write_bytes(header + records)


# Where the target has the code, and memory in which .eh_frame may be (fuzz_jit_image.c).
JIT_CODE, JIT_MEMORY = 0x100000, 0x120000


def jit_entry(body):
    body += bytes(-(len(body) + 4) % 8)
    return struct.pack("<I", len(body)) + body


def jit_frames(functions, letters=b"zR\0", data_align=b"\x78"):
    """.eh_frame with absolute addresses: (start, size, DW_CFA instructions) each; ends with a zero."""
    section = jit_entry(b"\0\0\0\0\x01" + letters + b"\x01" + data_align + b"\x10\x01\0\x0c\x07\x08\x90\x01")
    for start, size, program in functions:
        section += jit_entry(struct.pack("<IQQ", len(section) + 4, start, size) + b"\0" + program)
    return section + bytes(4)


def jit_object(kind, frame_address, frame, symbols, frame_name=b".eh_frame"):
    """An ELF object that a process shows to debuggers, with .text at the beginning of the code."""
    names = b"\0.text\0.symtab\0.strtab\0" + frame_name + b"\0"
    strings, table = b"\0", bytes(24)
    for start, size, name, of in symbols:
        table += struct.pack("<IBBHQQ", len(strings), of, 0, 1, start, size)
        strings += name + b"\0"
    contents, sections, at = b"", [bytes(64)], 64
    for name, section, flags, address, link, entry, content in (
            (1, 8, 6, JIT_CODE, 0, 0, b""), (23, 1, 2, frame_address, 0, 0, frame), (7, 2, 0, 0, 4, 24, table),
            (15, 3, 0, 0, 0, 0, strings), (15, 3, 0, 0, 0, 0, names)):
        sections.append(struct.pack("<IIQQQQIIQQ", name, section, flags, address, at + len(contents), len(content),
                                    link, 0, 1, entry))
        contents += content
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", kind, 62, 1, 0, 0, at + len(contents), 0, 64, 0, 0, 64, len(sections), 5)
    return header + contents + b"".join(sections)


# CFA, rbp and return address as the kernel saves them for a signal's handler.
SIGNAL_PROGRAM = (b"\x0f\x04\x77\xa0\x01\x06" + b"\x10\x06\x03\x77\xf8\x00" + b"\x10\x10\x03\x77\xa8\x01")


def make_jit_image(seeds):
    whole = [(JIT_CODE + 0x40 * i, 0x30, b"\x41\x0e\x10\x86\x02") for i in range(4)]
    frames, other = jit_frames(whole), jit_frames([(JIT_CODE + 0x10, 0x60, b"\x0e\x20")])
    named = [(0x40 * i, 0x30, b"made_%d" % i, 0x12) for i in range(6)]
    seeds_of = {
        "memory": (b"", frames), "two": (b"", frames + frames), "disputed": (b"", frames + other),
        "signal": (b"", jit_frames(whole, b"zRS\0")),
        "restorer": (b"", jit_frames([(JIT_CODE + 0x40, 9, SIGNAL_PROGRAM)], b"zRS\0")), "no-align": (b"", jit_frames(whole, data_align=b"\x7c")),
        "outside": (b"", jit_frames([(0x5000, 16, b""), (JIT_CODE + 0xfff0, 0x20, b""), (JIT_CODE, 0, b"")])),
        "broken": (b"", jit_frames([(JIT_CODE, 16, b"\x0e"), (JIT_CODE + 64, 16, b"\x3f\x3f")])),
        "cut": (b"", frames[:-6]), "late": (b"\0", bytes(100) + b"zzz" + bytes(5) + frames),
        "far": (b"", jit_frames([(JIT_CODE, 16, b"\x0e\x10"), (JIT_CODE + 0x4000, 16, b"\x0e\x10")])),
        "object": (jit_object(1, JIT_MEMORY, frames, named), frames),
        "object-wins": (jit_object(1, JIT_MEMORY + len(other), frames, named), other + frames),
        "object-linked": (jit_object(3, 0x10, frames, [(JIT_CODE + s, n, t, k) for s, n, t, k in named]), b""),
        "debug-frame": (jit_object(3, 0, frames, named, b".debug_frame"), b""),
        "no-memory": (jit_object(1, 0x999000, frames, named), b""),
        "odd-symbols": (jit_object(1, 0, b"", [(0, 16, b"", 2), (0, 0, b"a", 2), (0, 1 << 40, b"b", 2),
                                               (64, 16, b"c", 1), (64, 16, b"d", 0), (64, 32, b"e" * 5000, 2)]), b""),
    }
    for name, (shown, memory) in seeds_of.items():
        (seeds / name).write_bytes(struct.pack("<H", len(shown)) + shown + memory)


def record(wallprof, path):
    """A real recording, where that can be made: it holds what no hand would think of."""
    subprocess.run([wallprof, "record", "-q", "-o", path, "--", "true"], capture_output=True)


def damage(seeds):
    """A capture that is cut, changed, of another version, and goes on with what no version has."""
    whole = (seeds / "command").read_bytes()
    notes = struct.pack("<II", 0x184D2A55, 8)
    for name, content in (
            ("cut", whole[:-20]), ("header", whole[:10]), ("version", whole[:16] + b"\xff" + whole[17:]),
            ("changed", whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]), ("notes", whole + notes + bytes(8)),
            ("notes-cut", whole + notes), ("unsized", whole + b"\x28\xb5\x2f\xfd\x04\0" + bytes(12)),
            ("no-frame", whole + b"\xff" * 18), ("huge", whole + b"\x28\xb5\x2f\xfd\xe4" + b"\x7f" * 13)):
        (seeds / f"damaged-{name}").write_bytes(content)


def make_all(wallprof, make_seeds, work, seeds):
    """seeds/TARGET is made for each target; work is for what is made on the way."""
    for target in ("api", "object", "maps", "jit", "jit_image", "unwind", "names", "script"):
        (seeds / target).mkdir(parents=True)
    work.mkdir(parents=True)
    make_objects(work, seeds / "object")
    make_unwind(work, seeds / "unwind", seeds / "object")
    make_maps(seeds / "maps")
    make_names(seeds / "names")
    make_scripts(seeds / "script")
    make_api(seeds / "api")
    make_jit(seeds / "jit")
    make_jit_image(seeds / "jit_image")
    # Built as the targets are, and would leave its counts of lines where the tests were begun.
    subprocess.run([make_seeds, seeds], check=True, capture_output=True,
                   env={**os.environ, "LLVM_PROFILE_FILE": "/dev/null"})
    damage(seeds / "capture")
    shutil.copy(SLEEPS, seeds / "capture" / "sleeps")
    record(wallprof, seeds / "capture" / "recorded")
