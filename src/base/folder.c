/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders as a whole: see folder.h. */
#include "base/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	if (type == FTW_DP)
		(void)chmod(path, 0700);
	(void)remove(path); /* what stays is removed another time */
	return 0;
}

void as_folder_remove(const char *path)
{
	(void)nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
}
