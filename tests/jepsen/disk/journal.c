/* What a power cut would take back: one journal for each file and each folder, by inode.
 *
 * A record is appended before the change that it undoes, so that a process killed in between leaves at worst the undo
 * of what never happened. A flush drops the records that were there when it began. After a flush that failed nothing
 * is dropped any more: the outcome of each record is in marks (SYNCED and FAILED, "all before that position").
 *
 * header:  magic, inode, start of what counts, whether a flush failed, how much was before the file's beginning
 * record:  magic and kind, its length, then as the kind says:
 *          WRITE   position, length, size before, 0;                   the bytes that were there
 *          RESIZE  new size, 0, size before, 0;                        the bytes that were cut
 *          APPEAR  0, 0, 0, 0;                                         name
 *          VANISH  inode, 0, 0, grave;                                 name
 *          RENAME  inode moved, 0, inode replaced or 0, grave or 0;    old name, new name
 *          SYNCED, FAILED  position, 0, 0, 0
 */
#include "shim.h"

#include <sys/uio.h>

#define MAGIC 0x4a44514bu
#define SLOTS 64
/* Of a file that is appended to and never flushed, more writes than these count as one. */
#define WRITES_TOLD_APART 4096
#define PIECE 65536
#define PUNCH_FROM (1 << 20)

struct header {
    uint64_t magic, inode, start, has_failed, base;
};

struct record {
    uint32_t magic, kind;
    uint64_t length, first, second, size, grave;
};

struct slot {
    char kind;
    ino_t inode;
    int descriptor;
    unsigned records;
    off_t append_end;
};

static struct slot slots[SLOTS];

static void name_journal(char *name, char kind, ino_t inode) {
    sprintf(name, "journal/%c%llu", kind, (unsigned long long)inode);
}

static void name_grave(char *name, uint64_t grave) { sprintf(name, "grave/%llu", (unsigned long long)grave); }

static void close_slot(struct slot *slot) {
    if (slot->kind != 0 && slot->descriptor >= 0) syscall(SYS_close, slot->descriptor);
    slot->kind = 0;
}

void journal_close_all(void) {
    for (int i = 0; i < SLOTS; i++) close_slot(&slots[i]);
}

bool is_private(int descriptor) {
    if (descriptor < FIRST_PRIVATE_DESCRIPTOR) return false;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].kind != 0 && slots[i].descriptor == descriptor) return true;
    return descriptor == state_folder;
}

static uint64_t size_of(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 ? (uint64_t)found.st_size : 0;
}

static struct header header_of(const struct slot *slot) {
    struct header header = {0};
    if (syscall(SYS_pread64, slot->descriptor, &header, sizeof header, 0L) != (long)sizeof header) header.magic = 0;
    return header;
}

static void put_header(const struct slot *slot, struct header header) {
    /* The journal is opened for appending, where pwrite appends too; so another descriptor writes in place. */
    char name[64];
    name_journal(name, slot->kind, slot->inode);
    int descriptor = (int)syscall(SYS_openat, state_folder, name, O_WRONLY | O_CLOEXEC, 0);
    if (descriptor < 0 || syscall(SYS_pwrite64, descriptor, &header, sizeof header, 0L) != (long)sizeof header)
        count(&control->journal_failures);
    if (descriptor >= 0) syscall(SYS_close, descriptor);
}

/* Positions told to others go on growing, so that of two flushes at a time the later one drops nothing new. */
static void make_empty(struct slot *slot, uint64_t base) {
    struct header header = {MAGIC, slot->inode, sizeof header, 0, base};
    slot->records = 0;
    syscall(SYS_ftruncate, slot->descriptor, 0L);
    if (syscall(SYS_write, slot->descriptor, &header, sizeof header) != (long)sizeof header)
        count(&control->journal_failures);
}

/* Cut half a record off, which a killed process may have left. */
static void trim(struct slot *slot) {
    uint64_t size = size_of(slot->descriptor);
    struct header header = header_of(slot);
    if (size < sizeof header || header.magic != MAGIC || header.start > size) {
        make_empty(slot, 0);
        return;
    }
    uint64_t position = header.start;
    struct record record;
    while (position + sizeof record <= size) {
        long got = syscall(SYS_pread64, slot->descriptor, &record, sizeof record, (long)position);
        if (got != (long)sizeof record || record.magic != MAGIC || position + record.length > size) break;
        position += record.length;
    }
    if (position < size) syscall(SYS_ftruncate, slot->descriptor, (long)position);
}

/* NULL when there is none, and none is to be made. */
static struct slot *open_journal(char kind, ino_t inode, bool create) {
    struct slot *slot = &slots[(inode * 2 + (kind == OF_FOLDER)) % SLOTS];
    if (slot->kind == kind && slot->inode == inode) return slot;
    char name[64];
    name_journal(name, kind, inode);
    int flags = O_RDWR | O_APPEND | O_CLOEXEC | (create ? O_CREAT : 0);
    int descriptor = (int)syscall(SYS_openat, state_folder, name, flags, 0600);
    if (descriptor < 0) {
        if (create) count(&control->journal_failures);
        return NULL;
    }
    close_slot(slot);
    *slot = (struct slot){kind, inode, private_descriptor(descriptor), 0, 0};
    trim(slot);
    return slot;
}

static void append(struct slot *slot, struct record record, const void *data, size_t length) {
    record.magic = MAGIC;
    record.length = sizeof record + length;
    struct iovec parts[] = {{&record, sizeof record}, {(void *)data, length}};
    if (syscall(SYS_writev, slot->descriptor, parts, 2L) != (long)record.length) count(&control->journal_failures);
    slot->records++;
}

/* A record with the bytes that stand at `position` of the file. */
static void append_old_bytes(struct slot *slot, struct record record, int descriptor, off_t position, size_t length) {
    char piece[PIECE];
    uint64_t put = 0;
    if (length <= PIECE) {
        memset(piece, 0, length);
        if (length > 0) syscall(SYS_pread64, descriptor, piece, length, (long)position);
        append(slot, record, piece, length);
        return;
    }
    record.magic = MAGIC;
    record.length = sizeof record + length;
    bool is_good = syscall(SYS_write, slot->descriptor, &record, sizeof record) == (long)sizeof record;
    while (put < length && is_good) {
        size_t wanted = length - put < PIECE ? length - put : PIECE;
        memset(piece, 0, wanted);
        syscall(SYS_pread64, descriptor, piece, wanted, (long)(position + (off_t)put));
        is_good = syscall(SYS_write, slot->descriptor, piece, wanted) == (long)wanted;
        put += wanted;
    }
    if (!is_good) count(&control->journal_failures);
    slot->records++;
}

static int readable(int descriptor) {
    char link[64];
    if ((syscall(SYS_fcntl, descriptor, F_GETFL) & O_ACCMODE) == O_RDWR) return descriptor;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    int opened = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC, 0);
    if (opened < 0) count(&control->journal_failures);
    return opened;
}

static void journal_bytes(ino_t inode, struct record record, int descriptor, off_t position, off_t end) {
    struct slot *slot = open_journal(OF_FILE, inode, true);
    if (slot == NULL) return;
    size_t length = end > position ? (size_t)(end - position) : 0;
    int reader = length > 0 ? readable(descriptor) : descriptor;
    append_old_bytes(slot, record, reader, position, length);
    if (reader >= 0 && reader != descriptor) syscall(SYS_close, reader);
}

void journal_write(ino_t inode, int descriptor, off_t position, size_t length, off_t size) {
    struct slot *slot = open_journal(OF_FILE, inode, true);
    if (slot == NULL) return;
    bool is_append = position == size;
    off_t end = position + (off_t)length;
    if (!(is_append && slot->records >= WRITES_TOLD_APART && slot->append_end == position)) {
        struct record record = {.kind = WRITE, .first = (uint64_t)position, .second = length, .size = (uint64_t)size};
        journal_bytes(inode, record, descriptor, position, end < size ? end : size);
    }
    slot->append_end = is_append ? end : 0;
}

void journal_resize(ino_t inode, int descriptor, off_t new_size, off_t size) {
    struct slot *slot = open_journal(OF_FILE, inode, true);
    if (slot == NULL) return;
    slot->append_end = 0;
    struct record record = {.kind = RESIZE, .first = (uint64_t)new_size, .size = (uint64_t)size};
    journal_bytes(inode, record, descriptor, new_size, size);
}

static void journal_names(ino_t folder, struct record record, const char *first, const char *second) {
    char names[2 * NAME_MAX + 2];
    struct slot *slot = open_journal(OF_FOLDER, folder, true);
    if (slot == NULL) return;
    size_t length = strlen(first) + 1, more = second == NULL ? 0 : strlen(second) + 1;
    memcpy(names, first, length);
    if (more > 0) memcpy(names + length, second, more);
    append(slot, record, names, length + more);
    count(&control->name_changes);
}

/* Keep a file that is about to lose a name, under another one; 0 for a folder. */
static uint64_t bury(const struct place *place, const struct stat *found) {
    char name[64];
    if (S_ISDIR(found->st_mode)) return 0;
    uint64_t grave = __atomic_add_fetch(&control->graves, 1, __ATOMIC_RELAXED);
    name_grave(name, grave);
    if (syscall(SYS_linkat, place->folder, place->name, state_folder, name, 0L) == 0) return grave;
    count(&control->journal_failures);
    return 0;
}

void journal_appear(const struct place *place) {
    struct record record = {.kind = APPEAR};
    journal_names(place->folder_inode, record, place->name, NULL);
}

void journal_vanish(const struct place *place, const struct stat *found) {
    struct record record = {.kind = VANISH, .first = found->st_ino, .grave = bury(place, found)};
    journal_names(place->folder_inode, record, place->name, NULL);
}

void journal_rename(const struct place *from, const struct place *to, const struct stat *moved,
                    const struct stat *replaced) {
    struct record record = {.kind = RENAME, .first = moved->st_ino};
    if (replaced != NULL) {
        record.size = replaced->st_ino;
        record.grave = bury(to, replaced);
    }
    journal_names(to->folder_inode, record, from->name, to->name);
}

uint64_t journal_end(char kind, ino_t inode) {
    struct slot *slot = open_journal(kind, inode, false);
    if (slot == NULL) return 0;
    slot->append_end = 0;
    return header_of(slot).base + size_of(slot->descriptor);
}

/* What is durable needs its graves no longer; of a file that is gone for good, the journal is of no use either. */
static void empty_graves(const struct slot *slot, uint64_t start, uint64_t end) {
    struct record record;
    char name[64];
    struct stat found;
    for (uint64_t position = start; position < end; position += record.length) {
        long got = syscall(SYS_pread64, slot->descriptor, &record, sizeof record, (long)position);
        if (got != (long)sizeof record || record.magic != MAGIC) return;
        if (record.grave == 0) continue;
        name_grave(name, record.grave);
        if (fstatat(state_folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
        if (found.st_nlink == 1) {
            char journal[64];
            name_journal(journal, OF_FILE, found.st_ino);
            syscall(SYS_unlinkat, state_folder, journal, 0L);
            struct slot *of_file = &slots[found.st_ino * 2 % SLOTS];
            if (of_file->kind == OF_FILE && of_file->inode == found.st_ino) close_slot(of_file);
        }
        syscall(SYS_unlinkat, state_folder, name, 0L);
    }
}

/* Turn an answer of `journal_end` into a position of the file; whether anything counts before it. */
static bool is_of_use(const struct header *header, uint64_t *end) {
    *end = *end > header->base ? *end - header->base : 0;
    return header->magic == MAGIC && header->start < *end;
}

void journal_synced(char kind, ino_t inode, uint64_t end) {
    struct slot *slot = end == 0 ? NULL : open_journal(kind, inode, false);
    if (slot == NULL) return;
    struct header header = header_of(slot);
    if (!is_of_use(&header, &end)) return;
    if (header.has_failed) {
        append(slot, (struct record){.kind = SYNCED, .first = end}, NULL, 0);
        return;
    }
    /* First the records: a process that is killed in between must not leave one whose grave is empty. */
    const uint64_t start = header.start;
    header.start = end;
    put_header(slot, header);
    if (kind == OF_FOLDER) empty_graves(slot, start, end);
    if (end == size_of(slot->descriptor)) {
        make_empty(slot, header.base + end);
        return;
    }
    if (end > PUNCH_FROM) {
        long first = 4096, length = (long)end - first, mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
        syscall(SYS_fallocate, slot->descriptor, mode, first, length);
    }
}

void journal_failed(char kind, ino_t inode, uint64_t end) {
    struct slot *slot = end == 0 ? NULL : open_journal(kind, inode, false);
    if (slot == NULL) return;
    struct header header = header_of(slot);
    if (!is_of_use(&header, &end)) return;
    header.has_failed = 1;
    put_header(slot, header);
    append(slot, (struct record){.kind = FAILED, .first = end}, NULL, 0);
}

void journal_reset(char kind, ino_t inode) {
    struct slot *slot = open_journal(kind, inode, false);
    if (slot != NULL) make_empty(slot, header_of(slot).base + size_of(slot->descriptor));
}
