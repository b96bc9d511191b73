/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Folders as a whole. Any thread. */
#ifndef AS_BASE_FOLDER_H
#define AS_BASE_FOLDER_H

/* With everything in it; symbolic links are not followed. What cannot be removed stays. */
void as_folder_remove(const char *path);

#endif
