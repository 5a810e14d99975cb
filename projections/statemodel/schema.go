package statemodel

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/database"
)

//go:embed sql/tables.sql
var tables string

// Schema returns the name of the PostgreSQL schema that holds the tables. It is named after their
// definition, so a program with another definition builds tables of its own.
func Schema() string {
	sum := sha256.Sum256([]byte(tables))
	return "hubcloud_state_" + hex.EncodeToString(sum[:])[:12]
}

// SQL returns a statement with the name of the schema in place of {schema}.
func SQL(statement string) string { return strings.ReplaceAll(statement, "{schema}", Schema()) }

// Install creates the tables if they do not exist. Concurrent calls wait for each other.
func Install(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := database.InstallLock().Take(ctx, tx); err != nil {
			return err
		}
		const exists = "SELECT to_regnamespace($1) IS NOT NULL"
		var found bool
		if err := tx.QueryRow(ctx, exists, Schema()).Scan(&found); err != nil || found {
			return err
		}
		if _, err := tx.Exec(ctx, SQL(tables)); err != nil {
			return fmt.Errorf("create the schema %s: %w", Schema(), err)
		}
		return nil
	})
}
