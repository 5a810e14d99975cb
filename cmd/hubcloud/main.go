// Command hubcloud is the device-hub cloud in one binary: the service, a demo of it, virtual hubs,
// and the operator's commands.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(Run(context.Background(), os.Args[1:], Streams{Out: os.Stdout, Err: os.Stderr}))
}
