// Package radios tries the hub library for Node and the gateways on it: their own tests, and what a
// person gets who installs them.
package radios
