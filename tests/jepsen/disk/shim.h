/* A disk that lies, put between a process and glibc by LD_PRELOAD.
 *
 * Only what lies in the folder named by JEPSEN_DISK_FOLDER is touched. What to do with it stands in a page that the
 * harness and the process share (`struct control`; faulty_disk.py has the same layout). What a power cut could take
 * back is kept in journals beside the folder (journal.c), which a killed process leaves behind and undo.py applies.
 *
 * Calls go to the kernel by syscall(2), not by the next library's functions: it works before any constructor ran. What
 * glibc calls of itself (stdio, mkstemp) is not seen; CPython's files do not use it. Nothing is taken for durable but
 * by fsync and fdatasync: not by sync(2), and not for having been opened with O_SYNC.
 */
#ifndef JEPSEN_DISK_SHIM_H
#define JEPSEN_DISK_SHIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(__linux__) || !defined(__GLIBC__) || !defined(__LP64__)
#error "this needs 64-bit Linux and glibc"
#endif

#define CONTROL_MAGIC 0x4b53494451424a4bull
#define CONTROL_VERSION 1
#define FIRST_PRIVATE_DESCRIPTOR 700

struct control {
    uint64_t magic, version;
    /* Settings, by the harness. A count of -1 is "for ever". */
    int64_t slow_fsync_us, slow_fsync_seed, fail_fsync, fail_writes, space_is_limited, free_bytes, clock_offset_ms;
    /* By the process, and to be kept: names in the grave. */
    uint64_t graves;
    /* Counters, by the process. */
    uint64_t fsyncs, delayed_fsyncs, failed_fsyncs, writes, failed_writes, full_writes, name_changes, shifted_clocks;
    /* Changes that no journal can undo, and journals that could not be written: with either, a power cut is a guess. */
    uint64_t unseen_changes, journal_failures;
};

/* core.c */
extern struct control *control;
extern dev_t root_device;
extern int state_folder;

enum { UNKNOWN, OTHER, OUR_FILE, OUR_FOLDER };

/* A name, and the folder that it is in; `folder` is to be closed when it is ours. */
struct place {
    bool is_ours;
    int folder;
    ino_t folder_inode;
    char name[NAME_MAX + 1];
};

bool is_active(void);
int kind_of(int descriptor);
void forget_descriptor(int descriptor);
void find_place(struct place *place, int folder, const char *path);
void leave_place(struct place *place);
bool is_in_place(const struct place *place, struct stat *found);
void lock_disk(void);
void unlock_disk(void);
int private_descriptor(int descriptor);
bool take_one(int64_t *count);

static inline void count(uint64_t *counter) { __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }
static inline int64_t setting(const int64_t *value) { return __atomic_load_n(value, __ATOMIC_RELAXED); }

/* Space: what the next write may take, and what changes gave or took. */
size_t space_for(off_t position, size_t length, off_t size);
void space_taken(int64_t bytes);

/* journal.c: all to be called with the disk locked. */
enum { WRITE = 1, RESIZE, APPEAR, VANISH, RENAME, SYNCED, FAILED };
enum { OF_FILE = 'f', OF_FOLDER = 'd' };

void journal_write(ino_t inode, int descriptor, off_t position, size_t length, off_t size);
void journal_resize(ino_t inode, int descriptor, off_t new_size, off_t size);
void journal_appear(const struct place *place);
void journal_vanish(const struct place *place, const struct stat *found);
void journal_rename(const struct place *from, const struct place *to, const struct stat *moved,
                    const struct stat *replaced);
uint64_t journal_end(char kind, ino_t inode);
void journal_synced(char kind, ino_t inode, uint64_t end);
void journal_failed(char kind, ino_t inode, uint64_t end);
void journal_reset(char kind, ino_t inode);
void journal_close_all(void);
bool is_private(int descriptor);

#endif
