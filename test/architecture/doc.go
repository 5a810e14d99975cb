// Package architecture holds the rules of the house that a compiler does not: which folder may
// import which, and why.
package architecture
