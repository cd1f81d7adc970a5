/* The calls that change what is in a file, and those that make it durable. */
#include "shim.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <time.h>

#define MOST_PARTS 1024
#define HERE (-1L)

/* A change about to be made to a file of ours: what it may take, and with the disk locked until `after`. */
struct change {
    bool is_ours;
    ino_t inode;
    off_t position, size;
    size_t allowed;
};

static off_t size_of(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 ? found.st_size : 0;
}

/* Whether the change may go on; false with errno set. */
static bool before(struct change *change, int descriptor, off_t position, size_t length) {
    struct stat found;
    change->allowed = length;
    change->is_ours = kind_of(descriptor) == OUR_FILE && length > 0;
    if (!change->is_ours) return true;
    int flags = (int)syscall(SYS_fcntl, descriptor, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || fstat(descriptor, &found) != 0 || !S_ISREG(found.st_mode)) {
        change->is_ours = false;
        return true;
    }
    count(&control->writes);
    if (take_one(&control->fail_writes)) {
        count(&control->failed_writes);
        errno = EIO;
        return false;
    }
    lock_disk();
    change->inode = found.st_ino;
    change->size = size_of(descriptor);
    change->position = flags & O_APPEND ? change->size : position;
    if (change->position == HERE) change->position = syscall(SYS_lseek, descriptor, 0L, SEEK_CUR);
    change->allowed = space_for(change->position, length, change->size);
    if (change->allowed < length) count(&control->full_writes);
    if (change->allowed == 0) {
        unlock_disk();
        errno = ENOSPC;
        return false;
    }
    journal_write(change->inode, descriptor, change->position, change->allowed, change->size);
    return true;
}

static ssize_t after(const struct change *change, int descriptor, ssize_t done) {
    if (!change->is_ours) return done;
    int saved = errno;
    off_t size = size_of(descriptor);
    if (size > change->size) space_taken(size - change->size);
    unlock_disk();
    errno = saved;
    return done;
}

static ssize_t write_parts(int descriptor, const struct iovec *parts, int number, off_t position, int flags) {
    struct change change;
    struct iovec fitting[MOST_PARTS];
    size_t length = 0, left;
    for (int i = 0; i < number && number <= MOST_PARTS; i++) length += parts[i].iov_len;
    if (!before(&change, descriptor, position, length)) return -1;
    if (change.allowed < length) {
        left = change.allowed;
        for (int i = 0; i < number; i++) {
            fitting[i] = parts[i];
            if (fitting[i].iov_len > left) fitting[i].iov_len = left;
            left -= fitting[i].iov_len;
        }
        parts = fitting;
    }
    /* pwritev2 at -1 writes where the file stands. */
    return after(&change, descriptor, syscall(SYS_pwritev2, descriptor, parts, (long)number, position, 0L, flags));
}

ssize_t write(int descriptor, const void *data, size_t length) {
    struct change change;
    if (kind_of(descriptor) != OUR_FILE) return syscall(SYS_write, descriptor, data, length);
    if (!before(&change, descriptor, HERE, length)) return -1;
    return after(&change, descriptor, syscall(SYS_write, descriptor, data, change.allowed));
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t position) {
    struct change change;
    if (position < 0) return syscall(SYS_pwrite64, descriptor, data, length, position);
    if (!before(&change, descriptor, position, length)) return -1;
    return after(&change, descriptor, syscall(SYS_pwrite64, descriptor, data, change.allowed, position));
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off_t position) {
    return pwrite(descriptor, data, length, position);
}

ssize_t writev(int descriptor, const struct iovec *parts, int number) {
    if (kind_of(descriptor) != OUR_FILE) return syscall(SYS_writev, descriptor, parts, (long)number);
    return write_parts(descriptor, parts, number, HERE, 0);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int number, off_t position) {
    if (position < 0) return syscall(SYS_pwritev, descriptor, parts, (long)number, position, 0L);
    return write_parts(descriptor, parts, number, position, 0);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int number, off_t position) {
    return pwritev(descriptor, parts, number, position);
}

ssize_t pwritev2(int descriptor, const struct iovec *parts, int number, off_t position, int flags) {
    return write_parts(descriptor, parts, number, position, flags);
}

ssize_t pwritev64v2(int descriptor, const struct iovec *parts, int number, off_t position, int flags) {
    return write_parts(descriptor, parts, number, position, flags);
}

ssize_t sendfile(int target, int source, off_t *position, size_t length) {
    struct change change;
    if (!before(&change, target, HERE, length)) return -1;
    return after(&change, target, syscall(SYS_sendfile, target, source, position, change.allowed));
}

ssize_t sendfile64(int target, int source, off_t *position, size_t length) {
    return sendfile(target, source, position, length);
}

ssize_t copy_file_range(int source, off_t *from, int target, off_t *to, size_t length, unsigned flags) {
    struct change change;
    if (!before(&change, target, to == NULL ? HERE : *to, length)) return -1;
    long done = syscall(SYS_copy_file_range, source, from, target, to, change.allowed, (long)flags);
    return after(&change, target, done);
}

ssize_t splice(int source, off_t *from, int target, off_t *to, size_t length, unsigned flags) {
    struct change change;
    if (kind_of(target) != OUR_FILE) return syscall(SYS_splice, source, from, target, to, length, (long)flags);
    if (!before(&change, target, to == NULL ? HERE : *to, length)) return -1;
    return after(&change, target, syscall(SYS_splice, source, from, target, to, change.allowed, (long)flags));
}

/* Sizes */

int ftruncate(int descriptor, off_t size) {
    struct stat found;
    if (kind_of(descriptor) != OUR_FILE) return (int)syscall(SYS_ftruncate, descriptor, size);
    lock_disk();
    bool is_there = fstat(descriptor, &found) == 0;
    if (is_there && size >= 0 && found.st_size != size)
        journal_resize(found.st_ino, descriptor, size, found.st_size);
    int answer = (int)syscall(SYS_ftruncate, descriptor, size);
    int saved = errno;
    if (is_there) space_taken(size_of(descriptor) - found.st_size);
    unlock_disk();
    errno = saved;
    return answer;
}

int ftruncate64(int descriptor, off_t size) { return ftruncate(descriptor, size); }

int truncate(const char *path, off_t size) {
    int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (descriptor < 0) return (int)syscall(SYS_truncate, path, size);
    forget_descriptor(descriptor);
    int answer = ftruncate(descriptor, size), saved = errno;
    syscall(SYS_close, descriptor);
    forget_descriptor(descriptor);
    errno = saved;
    return answer;
}

int truncate64(const char *path, off_t size) { return truncate(path, size); }

/* With the disk locked; what it does to a file is undone by its size, or by the bytes of the range. */
static int allocate(int descriptor, int mode, off_t position, off_t length) {
    struct stat found;
    off_t end = position + length;
    if (fstat(descriptor, &found) != 0) return -1;
    bool grows = !(mode & FALLOC_FL_KEEP_SIZE) && end > found.st_size;
    if (mode & ~(FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) count(&control->unseen_changes);
    if (end > found.st_size && space_for(found.st_size, (size_t)(end - found.st_size), found.st_size) <
                                   (size_t)(end - found.st_size)) {
        count(&control->full_writes);
        errno = ENOSPC;
        return -1;
    }
    if (mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE))
        journal_write(found.st_ino, descriptor, position, (size_t)length, found.st_size);
    else if (grows)
        journal_resize(found.st_ino, descriptor, end, found.st_size);
    int answer = (int)syscall(SYS_fallocate, descriptor, (long)mode, position, length);
    int saved = errno;
    space_taken(size_of(descriptor) - found.st_size);
    errno = saved;
    return answer;
}

int fallocate(int descriptor, int mode, off_t position, off_t length) {
    if (kind_of(descriptor) != OUR_FILE || position < 0 || length <= 0)
        return (int)syscall(SYS_fallocate, descriptor, (long)mode, position, length);
    lock_disk();
    int answer = allocate(descriptor, mode, position, length);
    unlock_disk();
    return answer;
}

int fallocate64(int descriptor, int mode, off_t position, off_t length) {
    return fallocate(descriptor, mode, position, length);
}

/* Answers the error. Where the file system cannot, glibc writes zeros; in our folder it is refused. */
int posix_fallocate(int descriptor, off_t position, off_t length) {
    int saved = errno, error = 0;
    if (kind_of(descriptor) != OUR_FILE) {
        int (*next)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
        return next(descriptor, position, length);
    }
    if (fallocate(descriptor, 0, position, length) != 0) error = errno;
    errno = saved;
    return error;
}

int posix_fallocate64(int descriptor, off_t position, off_t length) {
    return posix_fallocate(descriptor, position, length);
}

static void *map(void *address, size_t length, int protection, int flags, int descriptor, off_t position) {
    bool is_written = descriptor >= 0 && (flags & MAP_SHARED) && (protection & PROT_WRITE);
    if (is_written && kind_of(descriptor) == OUR_FILE) count(&control->unseen_changes);
    return (void *)syscall(SYS_mmap, address, length, (long)protection, (long)flags, (long)descriptor, position);
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t position) {
    return map(address, length, protection, flags, descriptor, position);
}

void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off_t position) {
    return map(address, length, protection, flags, descriptor, position);
}

/* Flushes */

static void pause_for(int64_t duration_us) {
    struct timespec left = {duration_us / 1000000, duration_us % 1000000 * 1000};
    while (syscall(SYS_nanosleep, &left, &left) != 0 && errno == EINTR) continue;
}

/* The same for the same seed and the same number of flushes. */
static int64_t delay_us(uint64_t flush) {
    int64_t most = setting(&control->slow_fsync_us), seed = setting(&control->slow_fsync_seed);
    if (most <= 0 || seed == 0) return most;
    uint64_t mixed = ((uint64_t)seed + flush) * 0x9e3779b97f4a7c15ull;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return (int64_t)((mixed ^ (mixed >> 31)) % (uint64_t)(most + 1));
}

static int flush(int descriptor, long number) {
    struct stat found;
    int kind = kind_of(descriptor);
    if ((kind != OUR_FILE && kind != OUR_FOLDER) || fstat(descriptor, &found) != 0)
        return (int)syscall(number, descriptor);
    char of = kind == OUR_FILE ? OF_FILE : OF_FOLDER;
    lock_disk();
    uint64_t end = journal_end(of, found.st_ino);
    unlock_disk();
    int64_t delay = delay_us(__atomic_fetch_add(&control->fsyncs, 1, __ATOMIC_RELAXED));
    if (delay > 0) {
        count(&control->delayed_fsyncs);
        pause_for(delay);
    }
    bool is_to_fail = take_one(&control->fail_fsync);
    int answer = is_to_fail ? -1 : (int)syscall(number, descriptor), saved = is_to_fail ? EIO : errno;
    if (is_to_fail) count(&control->failed_fsyncs);
    lock_disk();
    if (answer == 0)
        journal_synced(of, found.st_ino, end);
    else
        journal_failed(of, found.st_ino, end);
    unlock_disk();
    errno = saved;
    return answer;
}

int fsync(int descriptor) { return flush(descriptor, SYS_fsync); }

int fdatasync(int descriptor) { return flush(descriptor, SYS_fdatasync); }
