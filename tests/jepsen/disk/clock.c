/* The wall clock, which jumps, and the free space, as the full disk tells it. The monotonic clocks are true.
 *
 * Waits for a moment of the wall clock are the kernel's, and so is the time that files were changed: neither jumps.
 */
#include "shim.h"

#include <dlfcn.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <time.h>

typedef int (*clock_gettime_function)(clockid_t, struct timespec *);

/* glibc's own, which asks the kernel's page without a call; looked up once, and twice does no harm. */
static int true_time(clockid_t clock, struct timespec *now) {
    static clock_gettime_function next;
    clock_gettime_function found = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (found == NULL) {
        found = (clock_gettime_function)dlsym(RTLD_NEXT, "clock_gettime");
        if (found == NULL) return (int)syscall(SYS_clock_gettime, clock, now);
        __atomic_store_n(&next, found, __ATOMIC_RELAXED);
    }
    return found(clock, now);
}

static bool is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int answer = true_time(clock, now);
    if (answer != 0 || !is_wall(clock) || !is_active()) return answer;
    int64_t offset_ms = setting(&control->clock_offset_ms);
    if (offset_ms == 0) return 0;
    count(&control->shifted_clocks);
    int64_t nanoseconds = now->tv_nsec + offset_ms % 1000 * 1000000;
    now->tv_sec += offset_ms / 1000 + (nanoseconds >= 1000000000) - (nanoseconds < 0);
    now->tv_nsec = (nanoseconds + 1000000000) % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    if (zone != NULL) memset(zone, 0, sizeof(struct timezone));
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    if (clock_gettime(CLOCK_REALTIME, &precise) != 0) return -1;
    if (now != NULL) *now = precise.tv_sec;
    return precise.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* Free space */

static int limited(int answer, int kind, struct statvfs *found) {
    if (answer != 0 || (kind != OUR_FILE && kind != OUR_FOLDER)) return answer;
    if (!setting(&control->space_is_limited)) return 0;
    int64_t left = setting(&control->free_bytes);
    fsblkcnt_t blocks = left > 0 ? (fsblkcnt_t)left / found->f_frsize : 0;
    if (found->f_bavail > blocks) found->f_bavail = blocks;
    if (found->f_bfree > blocks) found->f_bfree = blocks;
    return 0;
}

int fstatvfs(int descriptor, struct statvfs *found) {
    int (*next)(int, struct statvfs *) = (int (*)(int, struct statvfs *))dlsym(RTLD_NEXT, "fstatvfs");
    return limited(next(descriptor, found), kind_of(descriptor), found);
}

int fstatvfs64(int descriptor, struct statvfs64 *found) { return fstatvfs(descriptor, (struct statvfs *)found); }

int statvfs(const char *path, struct statvfs *found) {
    int (*next)(const char *, struct statvfs *) = (int (*)(const char *, struct statvfs *))dlsym(RTLD_NEXT, "statvfs");
    int answer = next(path, found), saved = errno;
    if (answer == 0 && is_active()) {
        int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
        forget_descriptor(descriptor);
        limited(0, kind_of(descriptor), found);
        forget_descriptor(descriptor);
        if (descriptor >= 0) syscall(SYS_close, descriptor);
    }
    errno = saved;
    return answer;
}

int statvfs64(const char *path, struct statvfs64 *found) { return statvfs(path, (struct statvfs *)found); }
