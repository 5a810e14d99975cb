// Package architecture tests which folder may import which, and why.
package architecture
