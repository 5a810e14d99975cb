package schema

import (
	"context"
	_ "embed"
	"hash/fnv"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Lock is an advisory lock of PostgreSQL. All versions of the program use the same two numbers for
// a lock, so they must never change.
type Lock struct{ space, key int32 }

const (
	projectorSpace = 0x68756263 // "hubc"
	buildSpace     = 0x68756262 // "hubb"
	servingSpace   = 0x68756273 // "hubs"
)

// InstallLock returns the lock that is held while schemas are created or dropped.
func InstallLock() Lock { return Lock{projectorSpace, 1} }

// ProjectorLock returns the lock of the process that projects into a schema.
func ProjectorLock(schema string) Lock { return Lock{projectorSpace, keyOf(schema)} }

// BuildLock returns the lock of the process that builds read models beside a schema.
func BuildLock(schema string) Lock { return Lock{buildSpace, keyOf(schema)} }

// ServingLock returns the lock that is shared by all processes that read from a schema.
func ServingLock(schema string) Lock { return Lock{servingSpace, keyOf(schema)} }

func keyOf(schema string) int32 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(schema)) // never fails
	return int32(hash.Sum32())
}

var (
	//go:embed sql/lock_held.sql
	lockHeld string
	//go:embed sql/end_silent_sessions.sql
	endSilentSessions string
)

// Try takes the lock until the connection ends, and reports whether it did. If another session
// holds the lock and has been silent for SilenceLimit, Try ends that session: the next Try
// succeeds.
func (l Lock) Try(ctx context.Context, conn *pgx.Conn) (taken bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1::int, $2::int)", l.space, l.key).
		Scan(&taken)
	if err != nil || taken {
		return taken, err
	}
	classid, objid := l.columns()
	_, err = conn.Exec(ctx, endSilentSessions, classid, objid, SilenceLimit.Seconds())
	return false, err
}

// Share takes the lock together with other sharers, until the connection ends. It waits for an
// exclusive holder.
func (l Lock) Share(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SELECT pg_advisory_lock_shared($1::int, $2::int)", l.space, l.key)
	return err
}

// Take takes the lock until the transaction ends. It waits for another holder.
func (l Lock) Take(ctx context.Context, tx DBTX) error {
	_, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, $2::int)", l.space, l.key)
	return err
}

// IsHeld reports whether any session holds the lock.
func (l Lock) IsHeld(ctx context.Context, db DBTX) (held bool, err error) {
	classid, objid := l.columns()
	err = db.QueryRow(ctx, lockHeld, classid, objid).Scan(&held)
	return held, err
}

// columns returns the lock's two numbers as they are in the view pg_locks.
func (l Lock) columns() (classid, objid int64) {
	return int64(uint32(l.space)), int64(uint32(l.key))
}

const (
	// SilenceLimit is how long the holder of a lock may be silent before a process that wants the
	// lock ends its session.
	SilenceLimit = 3 * time.Second
	// SessionLimit is how long the holder of a lock may be silent before the server ends its
	// session.
	SessionLimit = 4 * time.Second
	// transactionLimit is how long any session may be silent within a transaction, whose locks
	// other sessions may wait for.
	transactionLimit = 4 * time.Second
)

// EndWhenSilent makes the server end the session, and release its locks, after SessionLimit of
// silence: a process that hangs keeps its connections. Servers before version 14 have no such
// setting; there only Lock.Try ends the session.
func EndWhenSilent(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	if err := DetectLostClient(ctx, conn); err != nil {
		return err
	}
	const set = "SELECT set_config('idle_session_timeout', $1, false) WHERE " +
		"current_setting('idle_session_timeout', true) IS NOT NULL"
	_, err := conn.Exec(ctx, set, strconv.FormatInt(SessionLimit.Milliseconds(), 10))
	return err
}

// DetectLostClient makes the server end the session within seconds after this machine has vanished
// from the network. It has no effect on a Unix socket.
func DetectLostClient(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(
		ctx, "SET tcp_keepalives_idle = 1; SET tcp_keepalives_interval = 1; "+
			"SET tcp_keepalives_count = 2; SET tcp_user_timeout = 3000",
	)
	return err
}
