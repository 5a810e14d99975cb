// Package architecture tests which package may import which, and which package may speak a
// protocol.
package architecture
