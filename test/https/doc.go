// Package https tests the service with TLS: it obtains certificates from a real ACME server,
// pebble, in this process.
package https
