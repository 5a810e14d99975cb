// Package natscluster runs an external broker for black-box tests: three nats-servers, each a
// process of the test binary, with the configuration that `hubcloud broker-config` writes, and a
// database.
//
// The servers keep their ports and their files over Kill and Start. They end with the test. The
// TestMain of a package that uses this one must call RunServer when Requested reports true.
package natscluster
