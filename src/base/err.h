/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Errors as values. A function that can fail returns int (0 or a negative enum as_status) and
 * takes a caller-owned struct as_error last. Libraries neither print nor exit; cli/ prints once.
 *
 *	if (fd < 0)
 *		return as_fail(err, AS_E_IO, errno, "cannot open '%s': %s", path, strerror(errno));
 *	...
 *	r = as_elf_open(fd, &elf, err);
 *	if (r < 0)
 *		return as_wrap(err, "cannot read the symbols of '%s'", path);
 *
 * Messages: lower case, no full stop, the object in quotes, what to do where it is known. A second
 * line and further ones ("\n  now, once: sudo …") are remedies ready to paste; cli/ prints them
 * indented. err may be NULL where the caller only wants the status.
 */
#ifndef AS_BASE_ERR_H
#define AS_BASE_ERR_H

enum as_status {
	AS_OK = 0,
	AS_E_IO = -1,          /* the operating system refused: sys_errno says why */
	AS_E_FORMAT = -2,      /* the input is damaged or of an unknown kind */
	AS_E_LIMIT = -3,       /* a named limit was hit */
	AS_E_ACCESS = -4,      /* missing rights; the message names what grants them */
	AS_E_NOTFOUND = -5,    /* the object asked for does not exist */
	AS_E_UNSUPPORTED = -6, /* this machine or build cannot do it */
	AS_E_USAGE = -7,       /* the request makes no sense */
	AS_E_CANCELLED = -8,   /* the user stopped it */
};

struct as_error {
	enum as_status status;
	int sys_errno;
	char msg[1024];
};

/* Fills err (if not NULL) and returns status, so that it can stand in a return statement. */
int as_fail(struct as_error *err, enum as_status status, int sys_errno, const char *fmt, ...)
	__attribute__((format(printf, 4, 5), cold));

/* Puts "context: " before the message and returns the status already in err. */
int as_wrap(struct as_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), cold));

#endif
