package schema

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// ErrPooler means that a connection pooler gives the statements of one connection to several
// sessions of the server, as PgBouncer does with pool_mode transaction or statement. Locks, LISTEN,
// settings and prepared statements belong to a session, so they do not work through it.
var ErrPooler = errors.New(
	"the database is reached through a connection pooler that does not keep one server session " +
		"for each connection (PgBouncer with pool_mode transaction or statement, or with " +
		"ignored startup parameters), which locks, LISTEN and prepared statements need; give " +
		"--postgres-url the address of PostgreSQL itself",
)

// poolerRounds is how often CheckSession compares two connections. Already the first comparison
// finds a pooler without other clients; with other clients each finds it with some probability.
const poolerRounds = 8

// CheckSession returns nil if conn, a new connection that was made with config, has one session of
// the server for itself, and ErrPooler if it does not. A direct connection costs one query.
func CheckSession(ctx context.Context, config *pgx.ConnConfig, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	session, err := sessionOf(ctx, conn)
	if err != nil || session == conn.PgConn().PID() {
		return err // a pooler makes up the process id of the greeting
	}
	path, err := askSession(ctx, conn, "SHOW search_path")
	if err != nil {
		return err
	}
	if path != config.RuntimeParams["search_path"] {
		return ErrPooler
	}
	return WithConn(ctx, config, func(other *pgx.Conn) error {
		otherSession, err := sessionOf(ctx, other)
		if err != nil {
			return err
		}
		// Twice in a row, so that a pooler that takes sessions in turn is found too.
		for range poolerRounds {
			for _, c := range []struct {
				conn *pgx.Conn
				want uint32
			}{{conn, session}, {conn, session}, {other, otherSession}} {
				got, err := sessionOf(ctx, c.conn)
				if err != nil {
					return err
				}
				if got != c.want || session == otherSession {
					return ErrPooler
				}
			}
		}
		return nil
	})
}

// sessionOf returns the process id of the server's session that answers a statement.
func sessionOf(ctx context.Context, conn *pgx.Conn) (uint32, error) {
	text, err := askSession(ctx, conn, "SELECT pg_backend_pid()")
	if err != nil {
		return 0, err
	}
	pid, err := strconv.ParseUint(text, 10, 32)
	return uint32(pid), err
}

// askSession returns the first column of a statement's first row. The statement is not prepared,
// which a pooler might not pass on.
func askSession(ctx context.Context, conn *pgx.Conn, statement string) (string, error) {
	results, err := conn.PgConn().Exec(ctx, statement).ReadAll()
	if err != nil {
		return "", err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 {
		return "", fmt.Errorf("%s: got no row", statement)
	}
	return string(results[0].Rows[0][0]), nil
}
