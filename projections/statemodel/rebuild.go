package statemodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Rebuild deletes all states, so that the projector builds them again from the oldest commits of
// the journals. It returns before they are built; Built reports when they are.
func Rebuild(ctx context.Context, conn *pgx.Conn) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// A projector's transaction shares this lock, so none is under way.
		if _, err := tx.Exec(ctx, SQL(lockLeader)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, SQL(resetAll))
		return err
	})
	if err != nil {
		return fmt.Errorf("delete last reported states: %w", err)
	}
	return nil
}

// Built reports whether the states have been up with all journals since the tables were made or
// rebuilt.
func Built(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (built bool, err error) {
	err = db.QueryRow(ctx, SQL(builtQuery)).Scan(&built)
	return built, err
}
