// Package projections names the projections, their states and their errors. The packages below it
// build the read models in PostgreSQL, from which lists and single reads are answered:
//
//   - schema defines the tables, and names, creates and drops the PostgreSQL schemas that hold
//     them;
//   - tables declares the same tables in Go, for statements that insert, copy and compare rows;
//   - apply turns the entries of a stream into changes of the tables, and commits them;
//   - projector keeps the read models up to date, in one process at a time;
//   - rebuild builds new read models beside those in use, to replace them or to compare the two;
//   - readmodel has the queries, and waits until the read models have an event;
//   - status reads the checkpoints of the projections and what stops them;
//   - control has an operator's commands: stop, resume, skip, rebuild, verify, drop;
//   - access keeps keys, members and hubs in memory, for authorization without the database;
//   - devicestate folds the log of a hub into the last reported state of its devices;
//   - statemodel keeps the last reported states of all devices in tables;
//   - database opens connections and takes advisory locks;
//   - cluster runs a private PostgreSQL server.
//
// There are three projections: Directory reads the stream DIRECTORY, which records who owns what,
// Presence reads the bucket `presence`, which has each hub's connection state, and Devices reads the
// journals of the hub logs. Losing the database loses nothing: every table can be built again from
// the streams. What follows is about Directory and Presence; package statemodel documents Devices.
//
// Every event is applied once, in order. Only an operator can make a projection skip an event. Each
// package documents its own promises.
package projections
