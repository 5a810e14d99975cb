package schema

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// AnswerTimeout bounds one query. A database that works answers within milliseconds.
	AnswerTimeout = 5 * time.Second
	// CommitTimeout bounds a transaction that writes or reads many rows.
	CommitTimeout = 30 * time.Second
	// FirstRetry is the pause before the second try to reach the database. Later pauses are twice
	// as long each, up to LastRetry.
	FirstRetry = 50 * time.Millisecond
	// LastRetry is the longest pause between two tries.
	LastRetry = 2 * time.Second
	// WarnInterval is the least time between two log lines of a loop about a database that is away.
	WarnInterval = 10 * time.Second
)

// PoolConfig parses a connection string in libpq's form, for connections that find the tables of a
// schema without naming it.
func PoolConfig(url, schema string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read models: database URL: %w", err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = schema
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(
		transactionLimit.Milliseconds(), 10,
	)
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = AnswerTimeout
	}
	// Without keep-alives a query waits five minutes and more for a machine that has vanished.
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     5 * time.Second,
			Interval: 2 * time.Second,
			Count:    3,
		},
	}
	config.ConnConfig.DialFunc = dialer.DialContext
	return config, nil
}

// WithConn runs fn on a new connection, closes the connection, and returns fn's error.
func WithConn(ctx context.Context, config *pgx.ConnConfig, fn func(conn *pgx.Conn) error) error {
	connecting, cancel := context.WithTimeout(ctx, AnswerTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(connecting, config.Copy())
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == codeProtocol {
		return fmt.Errorf("%w (%s)", ErrPooler, answer.Message)
	}
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // the outcome of fn is known by now
	}()
	return fn(conn)
}

// Pause waits for d, or until ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// StorableText returns s with U+FFFD in place of zero bytes and of bytes that are not UTF-8, which
// PostgreSQL rejects. Ids from requests and texts from hubs may contain any bytes.
func StorableText(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") {
		return s
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// NotifyListeners makes every store that listens on a schema read its checkpoints and the stops
// again. The payload can be any text that is not a sequence: those announce commits.
func NotifyListeners(ctx context.Context, db DBTX, schema string) error {
	_, err := db.Exec(ctx, "SELECT pg_notify($1, 'look')", schema)
	return err
}
