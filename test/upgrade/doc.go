// Package upgrade starts the program on what each release has stored, on one node and in a cluster,
// and checks that all that clients have is still there: keys, cursors, events, sites, hubs. See
// README.md.
package upgrade
