// Package projections names the projections, their states and their errors. The packages below it
// build the read models in PostgreSQL, from which lists and single reads are answered:
//
//   - schema defines the tables, and names, creates and drops the PostgreSQL schemas that hold
//     them;
//   - tables declares the same tables as data, and how a row becomes the values of its columns;
//   - apply turns the entries of a stream into changes of the tables, and commits them;
//   - projector keeps the read models up to date, in one process at a time;
//   - rebuild builds read models beside those in use, and replaces those or compares with them;
//   - readmodel has the queries, and waits until the read models have an event;
//   - status reads how far the projections are and what stops them;
//   - control is what an operator does: stop, resume, skip, rebuild, verify, drop;
//   - access keeps keys, members and hubs in memory, for authorization without the database;
//   - database has connections and advisory locks;
//   - cluster runs a private PostgreSQL server.
//
// There are two projections: Directory from the log of who owns what, and Presence from the bucket
// that says whether hubs are connected. The read models hold no truth of their own: losing the
// database loses nothing, and every table can be built again from the streams.
//
// An event is applied once, in order; nothing is skipped unless an operator decides so. What each
// package promises is in its own documentation.
package projections
