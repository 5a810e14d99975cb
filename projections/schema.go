package projections

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

//go:generate env CGO_ENABLED=0 GOWORK=off go tool -modfile=../test/tools/go.mod sqlc generate -f sql/sqlc.yaml

//go:embed sql/schema.sql
var tables string

//go:embed sql/indexes.sql
var indexes string

//go:embed sql/control.sql
var control string

var (
	// ErrOtherInstallation says that the database holds the read models of another installation.
	ErrOtherInstallation = errors.New("the database belongs to another installation")
	// ErrEncoding says that the database cannot hold every text.
	ErrEncoding = errors.New("the database's encoding is not UTF8")
)

// definitionHash is the SHA-256 of the read models' definition, in hexadecimal digits.
func definitionHash() string {
	sum := sha256.Sum256([]byte(tables + indexes))
	return hex.EncodeToString(sum[:])
}

// schemaName names the schema that this program's read models are in.
func schemaName() string { return "hubcloud_" + definitionHash()[:12] }

// install makes the database fit: claims it for the installation and creates what is not there.
// Processes that start together wait for each other.
func install(ctx context.Context, conn *pgx.Conn, schema, installation string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var encoding string
		if err := tx.QueryRow(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
			return err
		}
		if encoding != "UTF8" {
			return fmt.Errorf(
				"%w: it is %s; create the database with ENCODING 'UTF8'", ErrEncoding, encoding,
			)
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1::int, $2::int)", lockSpace, lockInstall); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, control); err != nil {
			return err
		}
		queries := query.New(tx)
		if err := queries.ClaimInstallation(ctx, installation); err != nil {
			return err
		}
		switch owner, err := queries.Installation(ctx); {
		case err != nil:
			return err
		case owner != installation:
			return fmt.Errorf(
				"%w: it is that of %s, and this one is %s; give each installation a database of its own",
				ErrOtherInstallation, owner, installation,
			)
		}
		var there bool
		if err := tx.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", schema).Scan(&there); err != nil ||
			there {
			return err
		}
		if err := createTables(ctx, tx, schema); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, indexes); err != nil {
			return err
		}
		return queries.RecordSchema(
			ctx, query.RecordSchemaParams{Name: schema, DefinitionHash: definitionHash()},
		)
	})
}

// createTables creates a schema with its tables, without keys and indexes. The transaction finds
// them from then on.
func createTables(ctx context.Context, tx pgx.Tx, schema string) error {
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
