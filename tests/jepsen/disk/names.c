/* The calls that change what is in a folder, and those that give descriptors a new life. */
#include "shim.h"

#include <stdarg.h>

/* Names of what was there already are of no concern here; a file that is emptied is. */
static void before_open(const struct place *place, int flags, bool *is_new, off_t *cut) {
    struct stat found;
    *is_new = false;
    *cut = 0;
    if (!is_in_place(place, &found)) {
        *is_new = (flags & O_CREAT) != 0;
        if (*is_new) journal_appear(place);
        return;
    }
    if (S_ISLNK(found.st_mode)) count(&control->unseen_changes);
    if (!(flags & O_TRUNC) || !S_ISREG(found.st_mode) || (flags & O_CREAT && flags & O_EXCL)) return;
    if (found.st_size == 0) return;
    int reader = (int)syscall(SYS_openat, place->folder, place->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0);
    if (reader < 0) return;
    journal_resize(found.st_ino, reader, 0, found.st_size);
    syscall(SYS_close, reader);
    *cut = found.st_size;
}

static int open_ours(struct place *place, int folder, const char *path, int flags, mode_t mode) {
    struct stat found;
    bool is_new;
    off_t cut;
    lock_disk();
    before_open(place, flags, &is_new, &cut);
    int descriptor = (int)syscall(SYS_openat, folder, path, (long)flags, (long)mode), saved = errno;
    if (descriptor >= 0) {
        /* What an earlier file of this inode left behind. */
        if (is_new && fstat(descriptor, &found) == 0) journal_reset(OF_FILE, found.st_ino);
        space_taken(-cut);
    }
    unlock_disk();
    errno = saved;
    return descriptor;
}

static int open_any(int folder, const char *path, int flags, mode_t mode) {
    struct place place = {0};
    if (flags & (O_CREAT | O_TRUNC) && (flags & O_TMPFILE) != O_TMPFILE) find_place(&place, folder, path);
    int descriptor = place.is_ours ? open_ours(&place, folder, path, flags, mode)
                                   : (int)syscall(SYS_openat, folder, path, (long)flags, (long)mode);
    leave_place(&place);
    forget_descriptor(descriptor);
    return descriptor;
}

#define MODE_OF(flags, mode)                                             \
    mode_t mode = 0;                                                     \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) {       \
        va_list rest;                                                    \
        va_start(rest, flags);                                           \
        mode = va_arg(rest, mode_t);                                     \
        va_end(rest);                                                    \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_any(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE_OF(flags, mode)
    return open_any(folder, path, flags, mode);
}

/* What fortified programs call. */
int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_any(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_any(folder, path, flags, 0); }

int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* Names that appear */

static int end_change(struct place *place, int answer) {
    int saved = errno;
    if (place->is_ours) unlock_disk();
    leave_place(place);
    errno = saved;
    return answer;
}

static void begin_appearing(struct place *place, int folder, const char *path) {
    struct stat found;
    find_place(place, folder, path);
    if (!place->is_ours) return;
    lock_disk();
    if (!is_in_place(place, &found)) journal_appear(place);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    struct place place;
    struct stat made;
    begin_appearing(&place, folder, path);
    int answer = (int)syscall(SYS_mkdirat, folder, path, (long)mode);
    if (answer == 0 && place.is_ours && is_in_place(&place, &made)) journal_reset(OF_FOLDER, made.st_ino);
    return end_change(&place, answer);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    struct place place;
    begin_appearing(&place, to_folder, to);
    return end_change(&place, (int)syscall(SYS_linkat, from_folder, from, to_folder, to, (long)flags));
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int folder, const char *path) {
    struct place place;
    begin_appearing(&place, folder, path);
    return end_change(&place, (int)syscall(SYS_symlinkat, target, folder, path));
}

int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int mknodat(int folder, const char *path, mode_t mode, dev_t device) {
    struct place place;
    begin_appearing(&place, folder, path);
    return end_change(&place, (int)syscall(SYS_mknodat, folder, path, (long)mode, (long)device));
}

int mknod(const char *path, mode_t mode, dev_t device) { return mknodat(AT_FDCWD, path, mode, device); }

/* Names that go */

int unlinkat(int folder, const char *path, int flags) {
    struct place place;
    struct stat found = {0};
    find_place(&place, folder, path);
    if (place.is_ours) {
        lock_disk();
        if (is_in_place(&place, &found)) journal_vanish(&place, &found);
    }
    int answer = (int)syscall(SYS_unlinkat, folder, path, (long)flags);
    /* Its space is free with its last name, for who had it open closes it soon. */
    if (answer == 0 && place.is_ours && S_ISREG(found.st_mode) && found.st_nlink == 1) space_taken(-found.st_size);
    return end_change(&place, answer);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }

int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char *path) {
    int answer = unlink(path);
    return answer != 0 && errno == EISDIR ? rmdir(path) : answer;
}

static void journal_move(const struct place *from, const struct place *to, const struct stat *moved,
                         const struct stat *replaced) {
    if (from->is_ours && to->is_ours && from->folder_inode == to->folder_inode) {
        journal_rename(from, to, moved, replaced);
        return;
    }
    /* Between folders each keeps its half, so that a power cut may leave both names or none. */
    if (S_ISDIR(moved->st_mode)) count(&control->unseen_changes);
    if (to->is_ours) {
        if (replaced != NULL) journal_vanish(to, replaced);
        journal_appear(to);
    }
    if (from->is_ours) journal_vanish(from, moved);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    struct place old, new;
    struct stat moved, replaced;
    find_place(&old, from_folder, from);
    find_place(&new, to_folder, to);
    bool is_ours = old.is_ours || new.is_ours, is_replacing = false;
    if (is_ours) {
        lock_disk();
        const bool is_there = old.is_ours ? is_in_place(&old, &moved)
                                          : fstatat(from_folder, from, &moved, AT_SYMLINK_NOFOLLOW) == 0;
        is_replacing = new.is_ours && is_in_place(&new, &replaced);
        bool is_same = is_replacing && is_there && replaced.st_ino == moved.st_ino;
        if (flags & ~RENAME_NOREPLACE) count(&control->unseen_changes);
        if (is_there && !is_same && !(is_replacing && flags & RENAME_NOREPLACE))
            journal_move(&old, &new, &moved, is_replacing ? &replaced : NULL);
        is_replacing = is_replacing && !is_same;
    }
    long answer = flags == 0 ? syscall(SYS_renameat2, from_folder, from, to_folder, to, 0L)
                             : syscall(SYS_renameat2, from_folder, from, to_folder, to, (long)flags);
    int saved = errno;
    if (answer == 0 && is_replacing && S_ISREG(replaced.st_mode) && replaced.st_nlink == 1)
        space_taken(-replaced.st_size);
    if (is_ours) unlock_disk();
    leave_place(&old);
    leave_place(&new);
    errno = saved;
    return (int)answer;
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

/* Descriptors */

/* A program that closes whatever is open does not mean ours. */
int close(int descriptor) {
    if (is_private(descriptor)) {
        errno = EBADF;
        return -1;
    }
    forget_descriptor(descriptor);
    return (int)syscall(SYS_close, descriptor);
}

int dup(int descriptor) {
    int made = (int)syscall(SYS_dup, descriptor);
    forget_descriptor(made);
    return made;
}

int dup3(int descriptor, int wanted, int flags) {
    forget_descriptor(wanted);
    return (int)syscall(SYS_dup3, descriptor, wanted, (long)flags);
}

int dup2(int descriptor, int wanted) {
    if (descriptor != wanted) return dup3(descriptor, wanted, 0);
    return syscall(SYS_fcntl, descriptor, F_GETFD) < 0 ? -1 : wanted;
}

static int control_descriptor(int descriptor, int command, void *argument) {
    int answer = (int)syscall(SYS_fcntl, descriptor, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) forget_descriptor(answer);
    return answer;
}

int fcntl(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return control_descriptor(descriptor, command, argument);
}

int fcntl64(int descriptor, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return control_descriptor(descriptor, command, argument);
}
