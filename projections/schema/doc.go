// Package schema is what the readers and the writers of the read models have in common: the tables,
// the statements that write them, the positions and states of the projections, and the connections
// and locks of the database. From the read models lists and single reads are answered.
//
// There are three projections: Directory reads the stream DIRECTORY, which records who owns what,
// Presence reads the bucket `presence`, which has each hub's connection state, and Devices reads
// the journals of the hub logs. Losing the database loses nothing: every table can be built again
// from the streams. Every event is applied once, in order. Only an operator can make a projection
// skip an event.
//
// # Definition
//
// The definition is the text of sql/schema.sql and sql/indexes.sql. There are no migrations: a
// schema is named after the definition's hash, so a program with another definition builds a schema
// of its own beside the others, from the streams. Any change of the two files, even of a comment,
// makes every installation build its read models again. Table declares the same tables in Go, with
// the functions that turn a row into the values of its columns; a test compares both.
//
// The schema `hubcloud` (sql/control.sql) exists once in a database. It records the schemas of read
// models, the projections that operators have stopped, the builds, and the installation that the
// database belongs to. Programs of all versions share it.
//
// The static queries are in sql/queries.sql and sql/control_queries.sql, from which sqlc generates
// Queries: New(db) returns those that run on a pool, a connection or a transaction.
//
// # Locks
//
// A process that hangs or loses its network must not keep a lock that others wait for. So the owner
// of a connection that holds a lock calls EndWhenSilent, and runs statements on the connection
// several times within SilenceLimit. A process that wants the lock ends the session of a silent
// holder (Lock.Try). PostgreSQL 14 and later also end such a session themselves, a second later.
// Sessions that are silent within a transaction are ended too.
//
// Locks, settings and LISTEN belong to a session of the server. CheckSession finds a connection
// pooler that does not keep one for each connection.
//
// # To add a column
//
// These are the steps for a column of sites that comes from an event:
//
//  1. The fact and its stored form (domain/facts.go, domain/testdata/events), the state that is
//     folded from it (domain/site.go), and the view (domain/views.go). A new field of a fact is
//     optional: stored events lack it.
//  2. The command (streams/directory/service_sites.go), and the sites of the tests' installations
//     (test/population/org.go).
//  3. The definition (sql/schema.sql) with its new hash (definition_test.go), the table
//     (table_directory.go), and the change that the event makes
//     (projections/projector/changes_sites.go).
//  4. The queries: sql/queries.sql, then go generate. Then the view of a row
//     (projections/readmodel/sites.go).
//  5. The API: httpapi/sites.go with siteBody and its appendJSON, openapi.yaml, the client
//     (httpapi/client/sites.go), and the answers in httpapi/contract_test.go. The interfaces in
//     httpapi/ports.go and httpapi/portal/ports.go change with the command.
//  6. The portal: httpapi/portal/sites.go and httpapi/portal/pages/sites.html.
//
// Tests fail while a step between 3 and 5 is missing. When an installation starts the new program,
// it builds new read models from its events.
package schema

//go:generate env CGO_ENABLED=0 GOWORK=off go tool -modfile=../../test/tools/go.mod sqlc generate -f sql/sqlc.yaml
