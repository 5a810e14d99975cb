package projections

import (
	"context"
	_ "embed"
	"hash/fnv"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// Keys of PostgreSQL's advisory locks, which are the whole database's: a word that says what for, and a word of it.
const (
	// lockSpace has lockInstall, and the projector's lock of each schema.
	lockSpace   = 0x68756263 // "hubc"
	lockInstall = 1
	// lockBuilds has one lock a schema, of whoever builds read models beside it.
	lockBuilds = 0x68756262 // "hubb"
	// lockServing has one lock a schema, which everybody who reads from it shares.
	lockServing = 0x68756273 // "hubs"
)

//go:embed sql/locked.sql
var locked string

// lockOf is a schema's word of a lock.
func lockOf(schema string) int32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(schema)) // never fails
	return int32(hash.Sum32())
}

// tryLock takes a lock for as long as the connection lives, unless somebody else has it.
func tryLock(ctx context.Context, conn *pgx.Conn, space, key int32) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, $2::int)", space, key).Scan(&mine)
	return mine, err
}

// isLocked says whether anybody holds a lock.
func isLocked(ctx context.Context, db query.DBTX, space, key int32) (held bool, err error) {
	err = db.QueryRow(ctx, locked, int64(uint32(space)), int64(uint32(key))).Scan(&held)
	return held, err
}

// noticeLostMachines has the server notice within seconds that a machine has vanished, so that its locks are not held for hours. No effect on
// a Unix socket.
const noticeLostMachines = "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3"
