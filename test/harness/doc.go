// Package harness drives the built binary from outside, for black-box tests: it starts and kills
// the process, runs its commands, calls its API, reads the mails it sends, and connects hubs over
// real MQTT and TLS.
//
// Harness code relies only on the API contract, the hub protocol and the commands' help texts.
// Every API answer is checked against openapi.yaml.
//
// A Service is one process; a Target is either a Service that the suite started or a running
// service named by environment variables. A RawHub sends exactly the messages that a test asks for;
// a virtual hub behaves like a real one. Helpers fail the test instead of returning errors, and
// stop what they started when the test ends.
package harness
