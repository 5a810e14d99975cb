// Package upgrade starts the program on kept data directories, one of each format, and checks that
// all that clients have is still there: keys, cursors, events, sites, hubs.
//
// testdata/format-N.tar.gz is a data directory, without what the service creates again (the read
// models in postgres/) and without what belongs to a process (LOCK, endpoints.json, service.json,
// postgres.json). format-N.json is what clients saw in it.
//
// Before a change of the format (installation.Format), keep a directory of the current one:
//
//	HUBCLOUD_TEST_BINARY=bin/hubcloud go test ./test/upgrade -run TestMake -upgrade.make N
package upgrade
