// Package certificate provides the certificate of the public port: from a pair of files, which are
// read again when they change (Files), or from an authority that speaks ACME (ACME).
//
// Each has a TLS configuration for the listener and a loop, Run, that keeps the certificate up to
// date until its context ends. A new certificate that cannot be used never replaces one that can.
package certificate
