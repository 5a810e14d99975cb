// Package doctor checks every component of an installation and advises what to do.
//
// Check runs all checks concurrently, each with its own time limit, and returns their verdicts in a
// fixed order, in less than five seconds. A check that fails or hangs does not affect the others.
// Connections that several checks need (broker, database, the service's metrics) are opened once;
// the component concerned reports one that fails, and the other checks report an unknown state.
//
// The doctor works with the data directory of a service, with given addresses, or with both, also
// when no service runs. It changes nothing, except that it creates and removes a file of a few
// bytes in the data directory to test disk and clock. What it reads from the broker may be some
// seconds old. Its output contains no secrets.
package doctor
