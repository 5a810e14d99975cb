package operators

import (
	"flag"
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for services and hubs far more than they compute.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
