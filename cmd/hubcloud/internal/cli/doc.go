// Package cli is the command line of hubcloud: one type for each command, with its flags, its help
// text and what it prints. Results go to standard output, everything else to standard error. The
// flags of serve and dev are the fields of server.Config.
//
// Commands of operators (serve, backup, inventory, …) work on the broker of an installation through
// package operator. Commands with an API key (hubs, devices, events, send) use the API through
// package client, like any program of a customer.
package cli
