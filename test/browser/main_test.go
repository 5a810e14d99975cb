package browser

import (
	"flag"
	"os"
	"testing"

	"hubcloud/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// A browser takes more CPU and memory than a service.
	if err := flag.Set("test.parallel", "2"); err != nil {
		panic(err)
	}
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}
