// Package schema defines the tables of the read models, names the PostgreSQL schemas that hold
// them, and creates and drops those schemas.
//
// The definition is the text of sql/schema.sql and sql/indexes.sql. There are no migrations: a
// schema is named after the definition's hash, so a program with another definition builds a schema
// of its own beside the others, from the streams. Any change of the two files, even of a comment,
// makes every installation build its read models again.
//
// The schema `hubcloud` (sql/control.sql) exists once in a database. It records the schemas of read
// models, the projections that operators have stopped, the builds, and the installation that the
// database belongs to. Programs of all versions share it.
package schema
