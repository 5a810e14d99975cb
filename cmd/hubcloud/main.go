// Command hubcloud runs the device-hub cloud, its demo, virtual hubs and the operator's commands.
package main

import (
	"context"
	"os"

	"hubcloud/cmd/hubcloud/internal/cli"
)

func main() {
	out := cli.Output{Out: os.Stdout, Err: os.Stderr}
	os.Exit(cli.Run(context.Background(), os.Args[1:], out))
}
