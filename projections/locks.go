package projections

import (
	"context"
	_ "embed"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// Keys of PostgreSQL's advisory locks, which are the whole database's: a word that says what for,
// and a word of it.
const (
	// lockSpace has lockInstall, and the projector's lock of each schema.
	lockSpace   = 0x68756263 // "hubc"
	lockInstall = 1
	// lockBuilds has one lock a schema, of whoever builds read models beside it.
	lockBuilds = 0x68756262 // "hubb"
	// lockServing has one lock a schema, which everybody who reads from it shares.
	lockServing = 0x68756273 // "hubs"
)

var (
	//go:embed sql/locked.sql
	locked string
	//go:embed sql/silent.sql
	silent string
	//go:embed sql/writers.sql
	writers string
)

// lockOf is a schema's word of a lock.
func lockOf(schema string) int32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(schema)) // never fails
	return int32(hash.Sum32())
}

// tryLock takes a lock for as long as the connection lives, unless somebody else has it. A holder
// that is not heard of any more loses it: then the next try succeeds.
func tryLock(ctx context.Context, conn *pgx.Conn, space, key int32) (mine bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, $2::int)", space, key).
		Scan(&mine)
	if err != nil || mine {
		return mine, err
	}
	_, err = conn.Exec(
		ctx, silent, int64(uint32(space)), int64(uint32(key)), silenceLimit.Seconds(),
	)
	return false, err
}

// isLocked says whether anybody holds a lock.
func isLocked(ctx context.Context, db query.DBTX, space, key int32) (held bool, err error) {
	err = db.QueryRow(ctx, locked, int64(uint32(space)), int64(uint32(key))).Scan(&held)
	return held, err
}

// A process that hangs or is cut off must not keep locks that others wait for: the server ends its
// sessions.
const (
	// silenceLimit is how long a session that holds a lock may be silent until whoever wants the
	// lock ends it.
	silenceLimit = 3 * time.Second
	// sessionLimit is how long it may be silent until the server ends it by itself.
	sessionLimit = 4 * time.Second
	// transactionLimit is how long any session may be silent within a transaction, whose locks
	// others may wait for.
	transactionLimit = 4 * time.Second
)

// noticeLostMachines has the server notice within seconds that a machine has vanished. No effect on
// a Unix socket.
const noticeLostMachines = "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; SET " +
	"tcp_keepalives_count = 2; SET tcp_user_timeout = 3000"

// endWhenSilent has the server end a session, and so its locks, from which nothing has been heard
// for sessionLimit. A process that is stopped keeps its connections. Before version 14 the server
// does not do that by itself, and only whoever wants the lock does.
func endWhenSilent(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if _, err := conn.Exec(ctx, noticeLostMachines); err != nil {
		return err
	}
	const set = "SELECT set_config('idle_session_timeout', $1, false) WHERE " +
		"current_setting('idle_session_timeout', true) IS NOT NULL"
	_, err := conn.Exec(ctx, set, strconv.FormatInt(sessionLimit.Milliseconds(), 10))
	return err
}
