package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

func TestMain(m *testing.M) {
	if natscluster.Requested() {
		if err := natscluster.RunServer(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	// The tests wait for outages to end far more than they compute.
	if err := flag.Set("test.parallel", "3"); err != nil {
		panic(err)
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
