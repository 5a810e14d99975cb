// Package tables declares the tables of the read models: each with its columns, keys and indexes,
// and with how a row becomes the values of its columns. Inserting, copying, indexing and comparing
// rows all follow these declarations.
//
// The tables themselves are created from the text of package schema; a test holds the declarations
// to that text.
//
// # To add a column
//
// A column of sites, say, that comes from an event: the fact and its state (domain/facts.go,
// domain/site.go), the command (streams/directory/service_sites.go), the definition
// (projections/schema/sql), the table here (directory.go), the event's change
// (projections/apply/changes.go), the queries (projections/internal/query: queries.sql, go
// generate, rows.go; projections/readmodel/sites.go; domain/views.go), and the API
// (httpapi/sites.go, openapi.yaml, httpapi/client/sites.go, httpapi/portal/sites.go). Every
// installation then rebuilds its read models.
package tables
