// Package brokerconn opens a hub's TLS connection to the broker.
//
//   - Dial verifies the broker's certificate. Its errors are *Error, which names the stage that
//     failed: the caller needs the stage to decide whether a new certificate may help.
//   - Backoff computes the wait between attempts.
package brokerconn
