// Package tables declares the tables of the read models: their columns, keys and indexes, and the
// functions that turn a row into the values of its columns. Statements that insert, copy, index and
// compare rows are made from these declarations.
//
// Package schema creates the tables from its SQL. A test compares the declarations with that SQL.
//
// # To add a column
//
// These are the steps for a column of sites that comes from an event:
//
//  1. The fact and its stored form (domain/facts.go, domain/eventform_test.go), the state that is
//     folded from it (domain/site.go), and the view (domain/views.go). A new field of a fact is
//     optional: stored events lack it.
//  2. The command (streams/directory/service_sites.go), and the sites of the tests' installations
//     (test/population/org.go).
//  3. The definition (projections/schema/sql/schema.sql) with its new hash
//     (projections/schema/definition_test.go), the table (directory.go in this package), and the
//     change that the event makes (projections/apply/changes_sites.go).
//  4. The queries (projections/internal/query): sql/queries.sql, then go generate, then EachSite in
//     rows.go, which scans the columns by hand. Then the view of a row
//     (projections/readmodel/sites.go).
//  5. The API: httpapi/sites.go with siteBody and its appendJSON, openapi.yaml, the client
//     (httpapi/client/sites.go), and the answers in httpapi/contract_test.go. The interfaces in
//     httpapi/ports.go and httpapi/portal/ports.go change with the command.
//  6. The portal: httpapi/portal/sites.go and httpapi/portal/pages/sites.html.
//
// Tests fail while a step between 3 and 5 is missing. When an installation starts the new program,
// it builds new read models from its events.
package tables
