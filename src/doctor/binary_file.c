/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files by their first bytes: see binary_file.h. */
#include "doctor/binary_file.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

/* ---- scripts ---- */

/* The next word of a "#!" line; "" at its end. */
static const char *next_word(const char *s, char *ret, size_t n)
{
	size_t len;

	s += strspn(s, " \t");
	len = strcspn(s, " \t");
	(void)snprintf(ret, n, "%.*s", (int)AS_MIN(len, n - 1), s);
	return s + len;
}

/* "/usr/bin/env -S LANG=C python3 -u" -> "python3" */
static void find_reader(struct as_file_look *look)
{
	char word[sizeof look->reader];
	const char *at = next_word(look->interpreter, word, sizeof word), *slash;

	slash = strrchr(word, '/');
	if (strcmp(slash ? slash + 1 : word, "env") == 0) {
		do
			at = next_word(at, word, sizeof word);
		while (*word == '-' || strchr(word, '='));
	}
	memcpy(look->reader, word, sizeof word);
}

static void script(const uint8_t *p, size_t n, struct as_file_look *ret)
{
	size_t len = 0;

	ret->kind = AS_FILE_SCRIPT;
	while (n && (*p == ' ' || *p == '\t'))
		p++, n--;
	while (len < n && p[len] && p[len] != '\n' && p[len] != '\r')
		len++;
	len = AS_MIN(len, sizeof ret->interpreter - 1);
	memcpy(ret->interpreter, p, len);
	ret->interpreter[len] = 0;
	find_reader(ret);
}

/* ---- ELF ---- */

static const char *machine_name(unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {
		{EM_X86_64, "x86-64"},        {EM_AARCH64, "AArch64"},
		{EM_RISCV, "RISC-V"},         {EM_PPC64, "PowerPC"},
		{EM_S390, "S/390"},           {EM_MIPS, "MIPS"},
		{EM_BPF, "the kernel's BPF"}, {258 /* EM_LOONGARCH */, "LoongArch"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(names); i++) {
		if (names[i].machine == machine)
			return names[i].name;
	}
	return "another machine";
}

static unsigned machine_here(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#elif defined(__riscv)
	return EM_RISCV;
#else
	return EM_NONE;
#endif
}

/* Where the last of what the headers ask for ends. */
static uint64_t wanted(const Elf64_Ehdr *h, const uint8_t *p, size_t n)
{
	uint64_t sections = (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), end = sizeof *h;

	if (h->e_shoff && h->e_shoff <= UINT64_MAX - sections)
		end = AS_MAX(end, h->e_shoff + sections);
	for (unsigned i = 0; i < h->e_phnum; i++) {
		uint64_t at = h->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		if (at > n || n - at < sizeof ph)
			break;
		memcpy(&ph, p + at, sizeof ph);
		if (ph.p_type == PT_LOAD && ph.p_offset <= UINT64_MAX - ph.p_filesz)
			end = AS_MAX(end, ph.p_offset + ph.p_filesz);
	}
	return end;
}

static void elf(const uint8_t *p, size_t n, struct as_file_look *ret)
{
	Elf64_Ehdr h;

	if (n < EI_NIDENT) {
		ret->what = "the beginning of an ELF file only";
		return;
	}
	if (p[EI_CLASS] != ELFCLASS64 || p[EI_DATA] != ELFDATA2LSB) {
		ret->what = p[EI_CLASS] == ELFCLASS32
				    ? "a program of 32 bits, and only 64-bit ones can be read"
			    : p[EI_CLASS] == ELFCLASS64 && p[EI_DATA] == ELFDATA2MSB
				    ? "a program of a big-endian machine"
				    : "an ELF file with a damaged head";
		return;
	}
	if (n < sizeof h) {
		ret->what = "the beginning of an ELF file only";
		return;
	}
	memcpy(&h, p, sizeof h);
	if (h.e_type == ET_REL || h.e_type == ET_CORE) {
		ret->what = h.e_type == ET_REL
				    ? "an object file, which is linked before it is run"
				    : "a core dump, not the program that left it";
		return;
	}
	ret->kind = AS_FILE_PROGRAM;
	if (h.e_machine != machine_here() && machine_here() != EM_NONE)
		ret->machine = machine_name(h.e_machine);
	uint64_t end = wanted(&h, p, n);

	if (end > ret->size_bytes)
		ret->missing_bytes = end - ret->size_bytes;
}

/* ---- anything else ---- */

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] < ' ' && !strchr("\t\n\r\f\033", p[i]))
			return false;
		if (p[i] == 0)
			return false;
	}
	return n;
}

static const char *other(const uint8_t *p, size_t n)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *what;
	} magics[] = {
		{"MZ", 2, "a Windows program"},
		{"\xcf\xfa\xed\xfe", 4, "a macOS program"},
		{"\xca\xfe\xba\xbe", 4, "a Java class or a macOS program"},
		{"\0asm", 4, "a WebAssembly module; name the program that runs it"},
		{"!<arch>\n", 8, "a library of object files, which is linked before it is run"},
		{"!<thin>\n", 8, "a library of object files, which is linked before it is run"},
		{"PK\3\4", 4, "a zip or jar archive; name the program that runs it"},
		{"\x1f\x8b", 2, "a gzip archive"},
		{"ASSAYS", 6, "a recording, which assay report shows"},
	};

	for (size_t i = 0; i < AS_ARRAY_LEN(magics); i++) {
		if (n >= magics[i].n && memcmp(p, magics[i].bytes, magics[i].n) == 0)
			return magics[i].what;
	}
	if (!n)
		return "empty";
	return is_text(p, n) ? "text, without '#!' in its first line"
			     : "neither ELF nor a script";
}

void as_file_look_at(const uint8_t *p, size_t n, uint64_t size_bytes, struct as_file_look *ret)
{
	*ret = (struct as_file_look){.kind = AS_FILE_OTHER, .size_bytes = size_bytes};
	if (n >= SELFMAG && memcmp(p, ELFMAG, SELFMAG) == 0)
		elf(p, n, ret);
	else if (n >= 2 && memcmp(p, "#!", 2) == 0)
		script(p + 2, n - 2, ret);
	else
		ret->what = other(p, n);
}

int as_file_look(const char *path, struct as_file_look *ret, struct as_error *err)
{
	/* O_NONBLOCK: a FIFO at this path must not hang us */
	AS_CLEANUP(as_close_autop)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint8_t head[4096];
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return as_fail(err,
			       errno == ENOENT   ? AS_E_NOTFOUND
			       : errno == EACCES ? AS_E_ACCESS
						 : AS_E_IO,
			       errno, "cannot open '%s': %s", path, strerror(errno));
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return as_fail(err, AS_E_FORMAT, 0, "'%s' is no program, but %s", path,
			       S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
	do
		n = pread(fd, head, sizeof head, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return as_fail(err, AS_E_IO, errno, "cannot read '%s': %s", path,
			       strerror(errno));
	as_file_look_at(head, (size_t)n, (uint64_t)st.st_size, ret);
	return AS_OK;
}
