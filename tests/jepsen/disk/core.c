/* The page of settings, the lock, and which descriptors and paths lie in the folder. */
#include "shim.h"

#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>

#define DESCRIPTORS 65536
#define LOCK_READY 0x6b636f6c71ull

/* In a file, so that a process which was killed in the middle, or forked, leaves a lock that others can take. */
struct shared_lock {
    uint64_t ready;
    pthread_mutex_t mutex;
};

struct control *control;
dev_t root_device;
int state_folder = -1;
static char root[PATH_MAX];
static size_t root_length;
static struct shared_lock *shared_lock;
static bool is_initialised;
static unsigned char kinds[DESCRIPTORS];

static void complain(const char *what) {
    char line[256];
    int length = snprintf(line, sizeof line, "the faulty disk does not work: %s: %s\n", what, strerror(errno));
    syscall(SYS_write, 2, line, (size_t)length);
    syscall(SYS_exit_group, 97);
}

static void *map_shared(const char *name, int *descriptor) {
    *descriptor = (int)syscall(SYS_openat, state_folder, name, O_RDWR | O_CLOEXEC, 0);
    if (*descriptor < 0) complain(name);
    long mapped = syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    if (mapped == -1) complain(name);
    return (void *)mapped;
}

static void initialise_lock(void) {
    int descriptor;
    shared_lock = map_shared("lock", &descriptor);
    syscall(SYS_flock, descriptor, LOCK_EX);
    if (shared_lock->ready != LOCK_READY) {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&shared_lock->mutex, &attributes);
        shared_lock->ready = LOCK_READY;
    }
    /* Not left to the close: the mapping keeps the file open. */
    syscall(SYS_flock, descriptor, LOCK_UN);
    syscall(SYS_close, descriptor);
}

__attribute__((constructor)) static void initialise(void) {
    if (is_initialised) return;
    is_initialised = true;
    const char *folder = getenv("JEPSEN_DISK_FOLDER"), *state = getenv("JEPSEN_DISK_STATE");
    if (folder == NULL || state == NULL || strlen(folder) >= sizeof root) return;
    struct stat found;
    int descriptor, saved = errno;
    strcpy(root, folder);
    root_length = strlen(root);
    if (fstatat(AT_FDCWD, root, &found, 0) != 0) complain(root);
    root_device = found.st_dev;
    state_folder = (int)syscall(SYS_openat, AT_FDCWD, state, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (state_folder < 0) complain(state);
    state_folder = private_descriptor(state_folder);
    initialise_lock();
    struct control *mapped = map_shared("control", &descriptor);
    syscall(SYS_close, descriptor);
    errno = EPROTO;
    if (mapped->magic != CONTROL_MAGIC || mapped->version != CONTROL_VERSION) complain("control");
    control = mapped;
    errno = saved;
}

bool is_active(void) {
    if (!is_initialised) initialise();
    return control != NULL;
}

/* Out of the way: programs expect low numbers for what they open. */
int private_descriptor(int descriptor) {
    int moved = (int)syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR);
    if (moved < 0) return descriptor;
    syscall(SYS_close, descriptor);
    return moved;
}

void lock_disk(void) {
    if (pthread_mutex_lock(&shared_lock->mutex) == EOWNERDEAD) {
        /* A process that died may have left half a record: a reopened journal is trimmed. */
        pthread_mutex_consistent(&shared_lock->mutex);
        journal_close_all();
    }
}

void unlock_disk(void) { pthread_mutex_unlock(&shared_lock->mutex); }

/* Whether this call is one of the next so many, or of all. */
bool take_one(int64_t *left) {
    int64_t seen = setting(left);
    while (seen > 0)
        if (__atomic_compare_exchange_n(left, &seen, seen - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return true;
    return seen < 0;
}

static bool is_inside(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

static bool is_descriptor_inside(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlinkat(AT_FDCWD, link, path, sizeof path - 1);
    if (length <= 0) return false;
    path[length] = 0;
    char *deleted = strstr(path, " (deleted)");
    if (deleted != NULL && deleted[strlen(" (deleted)")] == 0) *deleted = 0;
    return is_inside(path);
}

static int look_at(int descriptor) {
    struct stat found;
    if (fstat(descriptor, &found) != 0) return UNKNOWN;
    if (found.st_dev != root_device || !(S_ISREG(found.st_mode) || S_ISDIR(found.st_mode))) return OTHER;
    if (!is_descriptor_inside(descriptor)) return OTHER;
    return S_ISREG(found.st_mode) ? OUR_FILE : OUR_FOLDER;
}

/* Looked up once in a descriptor's life: whatever gives it another one forgets what was found. */
int kind_of(int descriptor) {
    if (!is_active() || descriptor < 0) return OTHER;
    if (descriptor >= DESCRIPTORS) return look_at(descriptor);
    if (kinds[descriptor] == UNKNOWN) {
        int saved = errno;
        kinds[descriptor] = (unsigned char)look_at(descriptor);
        errno = saved;
    }
    return kinds[descriptor];
}

void forget_descriptor(int descriptor) {
    if (descriptor >= 0 && descriptor < DESCRIPTORS) kinds[descriptor] = UNKNOWN;
}

/* Splits the path as the kernel would; of what is not ours only that is said. */
void find_place(struct place *place, int folder, const char *path) {
    char parent[PATH_MAX];
    int saved = errno;
    place->is_ours = false;
    if (!is_active() || path == NULL) return;
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof parent) return;
    memcpy(parent, path, length + 1);
    while (length > 1 && parent[length - 1] == '/') parent[--length] = 0;
    char *slash = strrchr(parent, '/');
    const char *name = slash == NULL ? parent : slash + 1;
    if (strlen(name) == 0 || strlen(name) > NAME_MAX || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return;
    strcpy(place->name, name);
    const char *where = slash == NULL ? "." : slash == parent ? "/" : parent;
    if (slash != NULL) *slash = 0;
    if (slash == parent) where = "/";
    place->folder = (int)syscall(SYS_openat, folder, where, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    struct stat found;
    if (place->folder >= 0) {
        place->is_ours = fstat(place->folder, &found) == 0 && found.st_dev == root_device;
        place->is_ours = place->is_ours && is_descriptor_inside(place->folder);
        place->folder_inode = place->is_ours ? found.st_ino : 0;
        if (!place->is_ours) syscall(SYS_close, place->folder);
    }
    errno = saved;
}

void leave_place(struct place *place) {
    if (place->is_ours) syscall(SYS_close, place->folder);
}

bool is_in_place(const struct place *place, struct stat *found) {
    int saved = errno;
    bool is_there = fstatat(place->folder, place->name, found, AT_SYMLINK_NOFOLLOW) == 0;
    errno = saved;
    return is_there;
}

/* How much of a write the disk has room for; what lies within the file has its room. */
size_t space_for(off_t position, size_t length, off_t size) {
    if (!setting(&control->space_is_limited)) return length;
    int64_t left = setting(&control->free_bytes);
    int64_t room = (int64_t)size + (left > 0 ? left : 0) - (int64_t)position;
    if (room <= 0) return 0;
    return (uint64_t)room < length ? (size_t)room : length;
}

void space_taken(int64_t bytes) {
    if (bytes != 0) __atomic_fetch_sub(&control->free_bytes, bytes, __ATOMIC_RELAXED);
}
