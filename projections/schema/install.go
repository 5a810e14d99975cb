package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	// ErrOtherInstallation means that the database has the read models of another installation.
	ErrOtherInstallation = errors.New("the database belongs to another installation")
	// ErrEncoding means that the database cannot hold every text.
	ErrEncoding = errors.New("the database's encoding is not UTF8")
)

// Install claims the database for an installation, and creates the schema with its tables if they
// do not exist. Concurrent calls wait for each other. It fails with ErrOtherInstallation or
// ErrEncoding if the database cannot be used.
func Install(ctx context.Context, conn *pgx.Conn, schema, installation string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := checkEncoding(ctx, tx); err != nil {
			return err
		}
		if err := InstallLock().Take(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, control); err != nil {
			return err
		}
		queries := New(tx)
		if err := claim(ctx, queries, installation); err != nil {
			return err
		}
		const exists = "SELECT to_regnamespace($1) IS NOT NULL"
		var found bool
		if err := tx.QueryRow(ctx, exists, schema).Scan(&found); err != nil || found {
			return err
		}
		if err := CreateTables(ctx, tx, schema); err != nil {
			return err
		}
		if err := CreateIndexes(ctx, tx); err != nil {
			return err
		}
		return queries.RecordSchema(
			ctx, RecordSchemaParams{Name: schema, DefinitionHash: Hash()},
		)
	})
}

func checkEncoding(ctx context.Context, tx pgx.Tx) error {
	var encoding string
	if err := tx.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return err
	}
	if encoding != "UTF8" {
		return fmt.Errorf(
			"%w: it is %s; create the database with ENCODING 'UTF8'", ErrEncoding, encoding,
		)
	}
	return nil
}

func claim(ctx context.Context, queries *Queries, installation string) error {
	if err := queries.ClaimInstallation(ctx, installation); err != nil {
		return err
	}
	owner, err := queries.Installation(ctx)
	if err != nil {
		return err
	}
	if owner != installation {
		return fmt.Errorf(
			"%w: it belongs to %s, and this one is %s; give each installation a database of its own",
			ErrOtherInstallation, owner, installation,
		)
	}
	return nil
}

// CreateTables creates a schema with its tables, without keys and indexes. Later statements of the
// transaction find the tables without naming the schema.
func CreateTables(ctx context.Context, tx pgx.Tx, schema string) error {
	name := pgx.Identifier{schema}.Sanitize()
	for _, statement := range []string{
		"CREATE SCHEMA " + name, "SET LOCAL search_path = " + name, tables,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// CreateIndexes creates all keys and indexes of the tables that the transaction finds.
func CreateIndexes(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, indexes)
	return err
}
