/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pack file of a checkpoint store, for reading: records behind each other
 * and an index of them at the end. moe-store(5) has the layout. Nothing that a
 * pack says is believed: sizes are compared with the file's, the bytes of a
 * record with its checksum. Writing is packw's, many packs are packs'.
 *
 * A struct moe_pack belongs to the caller and serves any number of threads.
 */
#ifndef MOE_STORE_PACK_H
#define MOE_STORE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/buf.h"
#include "common/base/err.h"
#include "common/trust/digest.h"

#define MOE_PACK_CHUNK ((size_t)1 << 20)    /* plain bytes of each chunk but a tensor's last */
#define MOE_PACK_LIST ((size_t)64 << 20)    /* bytes of a list of references */
#define MOE_PACK_DEPTH 8                    /* deltas on deltas */
#define MOE_PACK_HEAD 32                    /* bytes before the first record */
#define MOE_PACK_RECORD 112                 /* bytes before a record's body */
#define MOE_PACK_ENTRY 48                   /* bytes of a row of the index */
#define MOE_PACK_FOOT 64                    /* bytes after the index */
#define MOE_PACK_REF 56                     /* bytes of a reference in a list */
#define MOE_PACK_MAX_RECORDS ((uint64_t)1 << 28)

/* What a record is. */
enum moe_pack_type {
    MOE_PACK_IS_CHUNK = 1,  /* encoded bytes of a tensor or a file */
    MOE_PACK_IS_TABLE = 2,  /* references to the chunks of a tensor longer than one */
    MOE_PACK_IS_FILE = 3    /* the parts of a file in order */
};

/*
 * Where a record is. The id and the type say which; pack and at say where it
 * was when this was written, which a collection of garbage may change.
 */
struct moe_pack_ref {
    unsigned char id[MOE_DIGEST_LEN];
    uint64_t pack, at;
    uint32_t stored;            /* bytes of the body */
    uint8_t type;               /* enum moe_pack_type */
};

struct moe_pack_record {
    struct moe_pack_ref ref;
    struct moe_pack_ref base;   /* of a delta; type 0: none */
    uint32_t plain;             /* bytes of what the body encodes */
    uint8_t kind;               /* of encoding, codec.h; 0 for lists */
    uint8_t dtype;              /* enum moe_dtype */
    uint8_t depth;              /* deltas below it, itself counted */
};

void moe_pack_put_ref(const struct moe_pack_ref *r, unsigned char p[static MOE_PACK_REF]);

/* False if it is none: an unknown type, bytes that must be zero. */
bool moe_pack_get_ref(const unsigned char p[static MOE_PACK_REF], struct moe_pack_ref *r);

/* The head of a record whose body has this CRC32C. */
void moe_pack_put_record(const struct moe_pack_record *r, uint32_t body_crc,
    unsigned char p[static MOE_PACK_RECORD]);

/* Errors: MOE_EFORMAT, without the pack's name. */
int moe_pack_get_record(const unsigned char p[static MOE_PACK_RECORD],
    struct moe_pack_record *r, uint32_t *body_crc, struct moe_err *e);

/* Head and foot of a pack; sum is the SHA-256 of the n rows between. */
void moe_pack_put_head(uint64_t number, unsigned char p[static MOE_PACK_HEAD]);
void moe_pack_put_foot(uint64_t index_at, uint64_t n, const unsigned char sum[MOE_DIGEST_LEN],
    unsigned char p[static MOE_PACK_FOOT]);

/* A row of the index; rows ascend by id, then by type. */
void moe_pack_put_entry(const struct moe_pack_ref *r, unsigned char p[static MOE_PACK_ENTRY]);
int moe_pack_compare(const struct moe_pack_ref *a, const struct moe_pack_ref *b);

struct moe_pack {
    uint64_t number;
    uint64_t index_at, n;       /* the index: where, rows */
    unsigned char sum[MOE_DIGEST_LEN];
    struct moe_pack_row *rows;  /* after moe_pack_load() */
};

/* Read head and foot of the file fd. Errors: MOE_EFORMAT, MOE_EIO. */
int moe_pack_open(struct moe_pack *p, int fd, const char *name, uint64_t number,
    struct moe_err *e);

/* Read the index, unless that was done. Errors: also MOE_ENOMEM. One thread at a time. */
int moe_pack_load(struct moe_pack *p, int fd, const char *name, struct moe_err *e);

/*
 * Candidates for an id once the index is loaded: *at is the offset of the one
 * numbered k from 0; false past the last. Its record's head has the whole id.
 */
bool moe_pack_find(const struct moe_pack *p, const unsigned char id[MOE_DIGEST_LEN], int type,
    size_t k, struct moe_pack_ref *out);

/*
 * Read the record at ref->at with ref->stored bytes of body: *r, and the body
 * appended to b, its checksum compared. b NULL: the head alone. MOE_EFORMAT if
 * it is not what ref says.
 */
int moe_pack_read(const struct moe_pack *p, int fd, const char *name,
    const struct moe_pack_ref *ref, struct moe_pack_record *r, struct moe_buf *b,
    struct moe_err *e);

/* The offset of the first record of the index behind `at`, or that of the index itself. */
uint64_t moe_pack_next(const struct moe_pack *p, uint64_t at);

/* The largest body a record of this type can have. */
size_t moe_pack_limit(int type);

void moe_pack_fini(struct moe_pack *p);

#endif
