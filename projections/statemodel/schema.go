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

// Hash returns the SHA-256 of the tables' definition, in hexadecimal digits.
func Hash() string {
	sum := sha256.Sum256([]byte(tables))
	return hex.EncodeToString(sum[:])
}

// Schema returns the name of the PostgreSQL schema that holds the tables. It is named after their
// definition, so a program with another definition builds tables of its own.
func Schema() string { return "hubcloud_state_" + Hash()[:12] }

// SQL returns a statement with the name of the schema in place of {schema}.
func SQL(statement string) string { return In(Schema(), statement) }

// In returns a statement with the name of a schema in place of {schema}.
func In(schema, statement string) string {
	return strings.ReplaceAll(statement, "{schema}", schema)
}

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
		return create(ctx, tx, Schema())
	})
}

// create creates a schema with the tables.
func create(ctx context.Context, tx pgx.Tx, schema string) error {
	if _, err := tx.Exec(ctx, In(schema, tables)); err != nil {
		return fmt.Errorf("create the schema %s: %w", schema, err)
	}
	return nil
}
