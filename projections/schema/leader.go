package schema

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// standByPause is the time between two tries to lead.
	standByPause = 500 * time.Millisecond
	// keepLockInterval is the time between two statements on the connection that holds the lock. It
	// must be well below SilenceLimit.
	keepLockInterval = 500 * time.Millisecond
	// keepLockTimeout bounds each of these statements.
	keepLockTimeout = 2 * time.Second
)

// Leadership is work that one process at a time does: the one that holds a lock in the database.
// The others stand by. One of them takes over within a second after that process ends, and within 5
// s if it hangs or is cut off.
type Leadership struct {
	// Work names the work in log lines.
	Work     string
	Database *pgx.ConnConfig
	Lock     Lock
	Logger   *slog.Logger
	// Begin is called on the connection that has just taken the lock; nil does nothing.
	Begin func(ctx context.Context, conn *pgx.Conn) error
	// Keep is called several times a second on the connection that holds the lock, which shows
	// other processes that the session does not hang. If it fails, the lock may be lost.
	Keep func(ctx context.Context, conn *pgx.Conn) error
	// Lead does the work until ctx ends, which it does when the lock may be lost.
	Lead func(ctx context.Context) error
}

// Run leads or stands by until ctx ends, and returns nil then. It returns an error only if the
// broker's connection was closed. After any other error it stands by and tries again.
func (l *Leadership) Run(ctx context.Context) error {
	warn := rate.Sometimes{First: 1, Interval: WarnInterval}
	for {
		err := WithConn(ctx, l.Database, func(conn *pgx.Conn) error {
			if err := l.standBy(ctx, conn); err != nil {
				return err
			}
			return l.lead(ctx, conn)
		})
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		warn.Do(func() {
			l.Logger.Warn(
				l.Work+" stopped; standing by", "error", err,
				"retry_ms", standByPause.Milliseconds(),
			)
		})
		Pause(ctx, standByPause)
	}
}

// standBy waits until the connection holds the lock. It polls, because a statement that waits for
// the lock would keep PostgreSQL from vacuuming.
func (l *Leadership) standBy(ctx context.Context, conn *pgx.Conn) error {
	if err := EndWhenSilent(ctx, conn); err != nil {
		return err
	}
	for logged := false; ctx.Err() == nil; Pause(ctx, standByPause) {
		taken, err := l.Lock.Try(ctx, conn)
		if err != nil || taken {
			return err
		}
		if !logged {
			l.Logger.Info("another process does the work; standing by", "work", l.Work)
			logged = true
		}
	}
	return ctx.Err()
}

// lead works as long as the connection holds the lock.
func (l *Leadership) lead(ctx context.Context, conn *pgx.Conn) error {
	if l.Begin != nil {
		if err := l.Begin(ctx, conn); err != nil {
			return fmt.Errorf("take over: %w", err)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.keepLock(ctx, conn) })
	group.Go(func() error { return l.Lead(ctx) })
	return group.Wait()
}

// keepLock must do nothing else that takes time.
func (l *Leadership) keepLock(ctx context.Context, conn *pgx.Conn) error {
	for ; ctx.Err() == nil; Pause(ctx, keepLockInterval) {
		asking, cancel := context.WithTimeout(ctx, keepLockTimeout)
		err := l.Keep(asking, conn)
		cancel()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("the lock of %s: %w", l.Work, err)
		}
	}
	return ctx.Err()
}
